"""Ctrl-C: the job is cancelled, one line says so, and the exit code is the shell's for an interrupt."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from opchain.runtime.job.status import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.dsl.interception import StartedJob

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
        for job in jobs:
            if job.client.get_job_status().result() not in _ENDED:
                job.client.cancel()
        names = [f"'{job.name}'" for job in jobs if _was_cancelled(job)]
        what = f"; cancelled: {', '.join(names)}" if names else ""
        click.echo(f"opchain: interrupted{what}", err=True)
        sys.exit(INTERRUPTED)


def _was_cancelled(job: StartedJob) -> bool:
    status = job.client.get_job_status().result()
    return status in (JobStatus.CANCELED, JobStatus.CANCELLING)
