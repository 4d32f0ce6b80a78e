"""What `opchain run` shows on standard error when a program has ended: the numbers of its jobs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from opchain.runtime.job_status import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.compiler.dsl.interception import StartedJob


def show_finished(jobs: Iterable[StartedJob]) -> None:
    """A table for each job that has finished; nothing for others, whose errors speak for them.

    A terminal gets it as wide as it is and in colour, a file or pipe as plain text.
    """
    for job in jobs:
        if job.client.get_job_status().result() is JobStatus.FINISHED:
            _show(job)


def _show(job: StartedJob) -> None:
    result = job.client.get_job_execution_result().result()
    click.echo(f"\njob '{job.name}' ran for {result.get_net_runtime():,} ms", err=True)
    if sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - loaded when there is something to show

        Console(stderr=True).print(result.metrics)
    else:
        click.echo(result.metrics.table(), err=True)
