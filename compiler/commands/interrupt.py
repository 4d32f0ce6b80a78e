"""Ctrl-C: jobs are cancelled, a line says so, and the exit code is the shell's for an interrupt.

An unbounded job ends its epoch first, unless Ctrl-C comes again; another line says from where it can continue.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from opchain.runtime.job.run import JobRun
from opchain.runtime.job.status import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.interception import StartedJob
    from opchain.runtime.job.client import JobClient

INTERRUPTED = 130
"""128 and the number of SIGINT, as shells count."""

_ENDED = (JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FINISHED)


@contextmanager
def ends_on_interrupt(jobs: Sequence[StartedJob]) -> Iterator[None]:
    """Within the block Ctrl-C ends the process with code 130, and jobs that run in its background too.

    A job that the program waits for has been cancelled by the time this hears of it.
    """
    try:
        yield
    except KeyboardInterrupt:
        # Ctrl-C again: whoever waits for the job's epoch has heard of it.
        with suppress(KeyboardInterrupt):
            for job in jobs:
                if job.client.get_job_status().result() not in (*_ENDED, JobStatus.CANCELLING):
                    _end(job.client)
        cancelled = [job for job in jobs if _was_cancelled(job)]
        names = ", ".join(f"'{job.name}'" for job in cancelled)
        click.echo(f"opchain: interrupted{names and f'; cancelled: {names}'}", err=True)
        for job in cancelled:
            left = job.client.what_is_left() if isinstance(job.client, JobRun) else None
            if left is not None:
                click.echo(f"opchain: job '{job.name}': {left}", err=True)
        sys.exit(INTERRUPTED)


def _end(client: JobClient) -> None:
    if isinstance(client, JobRun):
        client.end_on_interrupt()
    else:
        client.cancel()


def _was_cancelled(job: StartedJob) -> bool:
    status = job.client.get_job_status().result()
    return status in (JobStatus.CANCELED, JobStatus.CANCELLING)
