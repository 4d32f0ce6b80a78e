"""What `opchain run` shows of the jobs of a program that has ended: their numbers, as table and page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from opchain.compiler.commands.output import note, write_file
from opchain.runtime.job.run import JobRun
from opchain.runtime.job.status import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from opchain.compiler.dsl.interception import StartedJob
    from opchain.runtime.metrics.job_metrics import JobMetrics

_STOPPED = (JobStatus.CANCELLING, JobStatus.CANCELED)


def show_finished(jobs: Iterable[StartedJob]) -> None:
    """A table for each job that has finished, and for unbounded ones that were stopped.

    Nothing for others, whose errors speak for them.

    A terminal gets it as wide as it is and in colour, a file or pipe as plain text.
    """
    for job in jobs:
        if _is_finished(job):
            result = job.client.get_job_execution_result().result()
            ran = f"job '{job.name}' ran for {result.get_net_runtime():,} ms"
            if result.metrics.vertices:
                _show(ran, result.metrics)
            else:
                click.echo(f"\n{ran}, and there was nothing to do", err=True)
            continue
        metrics = _metrics_of(job)
        if metrics is not None and job.client.get_job_status().result() in _STOPPED:
            _show(f"job '{job.name}' was stopped", metrics)


def write_pages(jobs: Iterable[StartedJob], path: Path) -> None:
    """The plan page of each job that has numbers: `path`, then `path` with -2, -3, ... in its name.

    Raises:
        CommandError: A page cannot be written.
    """
    from opchain.compiler.plan.page.render import compiled_page  # noqa: PLC0415 - only when asked for

    for number, job in enumerate(jobs, start=1):
        page = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        metrics = _metrics_of(job)
        if metrics is not None:
            write_file(page, compiled_page(job.plan, metrics))
        else:
            note(f"job '{job.name}' has not finished and has no numbers; {page} is not written")


def _is_finished(job: StartedJob) -> bool:
    return job.client.get_job_status().result() is JobStatus.FINISHED


def _metrics_of(job: StartedJob) -> JobMetrics | None:
    """What a job has counted: all of it, or what it had when it was stopped; None where nobody knows."""
    if _is_finished(job):
        return job.client.get_job_execution_result().result().metrics
    history = job.client.history if isinstance(job.client, JobRun) else None
    totals = None if history is None else history.totals()
    return totals if totals is not None and totals.vertices else None


def _show(what: str, metrics: JobMetrics) -> None:
    click.echo(f"\n{what}", err=True)
    if sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - loaded when there is something to show

        Console(stderr=True).print(metrics)
    else:
        click.echo(metrics.table(), err=True)
