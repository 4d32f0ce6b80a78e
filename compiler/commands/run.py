"""`opchain run`: runs a program as `python FILE` would, and shows its jobs.

- Logging: opchain logs warnings to standard error; the user can ask for more.
- Results: the numbers of each job that has ended, as table and as page.
- Ctrl-C: the first one finishes the current epoch of an unbounded job, a second one aborts it. Bounded jobs are
  cancelled. A line names the checkpoint to resume from. The exit code is 130.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import textwrap
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opchain.compiler.command_line.failures import (
    PROGRAM_FAILED,
    failure_of,
    hint_for,
    user_traceback,
    wants_traceback,
)
from opchain.compiler.command_line.output import (
    check_folder_of,
    examples,
    note,
    to_stderr,
    write_file,
)
from opchain.compiler.command_line.program_command import (
    ProgramCommand,
    takes_arguments,
    takes_settings,
)
from opchain.compiler.command_line.program_file import as_main_program, run_as_main, whole_program
from opchain.compiler.graph.transformation import OperatorTransformation
from opchain.compiler.interception import (
    Capture,
    StartedJob,
    configuring,
    watching_environments,
    watching_jobs,
)
from opchain.compiler.monitoring.progress import showing_progress
from opchain.compiler.plan.layout import without_controls
from opchain.runtime.errors import (
    CheckpointError,
    CheckpointFailedError,
    CheckpointInUseError,
    GraphError,
    MissingLibraryError,
    StateError,
    StreamError,
)
from opchain.runtime.job.client import JobStatus
from opchain.runtime.program.operator_specs import CollectSinkSpec
from opchain.runtime.spark.remote_error import showing_whole_tracebacks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opchain.compiler.monitoring.job_watch import JobWatch, JobWatches
    from opchain.runtime.measurements.job_metrics import JobMetrics


INTERRUPTED = 130
"""128 and the number of SIGINT, as shells count."""

_ENDED = (JobStatus.CANCELED, JobStatus.FAILED, JobStatus.FINISHED)


@contextmanager
def ends_on_interrupt(jobs: Sequence[StartedJob]) -> Iterator[None]:
    """Within the block Ctrl-C ends the process with code 130, and cancels jobs in the background.

    A job that the program waits for is already cancelled when the interrupt arrives here.
    """
    try:
        yield
    except KeyboardInterrupt:
        # A second Ctrl-C aborts the epoch. The code that waits for the epoch has handled it.
        with suppress(KeyboardInterrupt):
            for job in jobs:
                if job.run.get_job_status().result() not in (*_ENDED, JobStatus.CANCELLING):
                    job.run.end_on_interrupt()
        cancelled = [job for job in jobs if _was_cancelled(job)]
        names = ", ".join(f"'{job.name}'" for job in cancelled)
        to_stderr(f"opchain: interrupted{names and f'; cancelled: {names}'}")
        for job in cancelled:
            left = job.run.resume_hint()
            if left is not None:
                to_stderr(f"opchain: job '{job.name}': {left}")
        sys.exit(INTERRUPTED)


def _was_cancelled(job: StartedJob) -> bool:
    status = job.run.get_job_status().result()
    return status in (JobStatus.CANCELED, JobStatus.CANCELLING)


LEVELS = (logging.INFO, logging.DEBUG)
"""The level for -v, and for -vv."""


class _PrintableFormatter(logging.Formatter):
    """Escapes control characters. On a terminal, long lines are broken between words."""

    def format(self, record: logging.LogRecord) -> str:
        text = without_controls(super().format(record))
        width = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 0
        return between_words(text, width) if width > 0 else text  # 0: the terminal has no size


def between_words(text: str, width: int) -> str:
    """The text with lines broken between words. Words longer than a line, such as paths, stay whole."""
    lines = (
        textwrap.wrap(
            line,
            width,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )
        or [line]
        for line in text.split("\n")
    )
    return "\n".join(part for parts in lines for part in parts)


@contextmanager
def logging_to_stderr(verbosity: int) -> Iterator[None]:
    """Within the block the loggers `opchain.*` write to standard error; with 0 only their warnings do.

    They do not propagate: if the program configures logging, each line would appear twice.
    """
    if not verbosity:
        warnings = logging.lastResort  # writes them, unless the program configures logging
        assert warnings is not None
        plain = warnings.formatter
        warnings.setFormatter(_PrintableFormatter("%(message)s"))
        try:
            yield
        finally:
            warnings.setFormatter(plain)
        return
    logger = logging.getLogger("opchain")
    before = logger.level, logger.propagate
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _PrintableFormatter("%(asctime)s.%(msecs)03d %(name)s: %(message)s", "%H:%M:%S")
    )
    logger.addHandler(handler)
    logger.setLevel(LEVELS[min(verbosity, len(LEVELS)) - 1])
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


_STOPPED = (JobStatus.CANCELLING, JobStatus.CANCELED)


def show_finished(jobs: Iterable[StartedJob]) -> None:
    """Prints a table for each job that has finished, and for unbounded jobs that were stopped.

    Failed jobs have an error instead. A terminal gets the table in its width and in colour, a file or pipe as plain text.
    """
    for job in jobs:
        if _is_finished(job):
            result = job.run.get_job_execution_result().result()
            ran = f"job '{job.name}' ran for {result.get_net_runtime():,} ms"
            if result.metrics.vertices:
                _show(ran, result.metrics)
            else:
                to_stderr(f"\n{ran} and had no work to do")
            continue
        metrics = _metrics_of(job)
        if metrics is not None and _is_cancelled(job):
            _show(f"job '{job.name}' was stopped", metrics)


def write_pages(watches: Iterable[JobWatch], path: Path) -> None:
    """Writes the page of each job: to `path`, then to `path` with -2, -3, ... in its name.

    Raises:
        CommandError: A page cannot be written.
    """
    from opchain.compiler.monitoring.page_server import run_page  # noqa: PLC0415 - only with this option

    for number, watch in enumerate(watches, start=1):
        page = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        write_file(page, run_page(watch))


def _is_finished(job: StartedJob) -> bool:
    return job.run.get_job_status().result() is JobStatus.FINISHED


def _is_cancelled(job: StartedJob) -> bool:
    return job.run.get_job_status().result() in _STOPPED


def _metrics_of(job: StartedJob) -> JobMetrics | None:
    """The metrics of a job, or those at the time it was stopped; None if they are unknown."""
    if _is_finished(job):
        return job.run.get_job_execution_result().result().metrics
    totals = None if job.run.history is None else job.run.history.totals()
    return totals if totals is not None and totals.vertices else None


def _show(what: str, metrics: JobMetrics) -> None:
    to_stderr(f"\n{what}")
    if sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - loaded when there is something to show

        Console(stderr=True).print(metrics)
    else:
        to_stderr(metrics.table())


@click.command(
    cls=ProgramCommand,
    epilog=examples(
        "opchain run --local job.py --input orders.csv",
        "opchain run job.py --from /data/savepoint -D execution.checkpointing.dir=/data/job",
    ),
)
@click.argument("file")
@takes_arguments
@takes_settings
@click.option("--local", is_flag=True, help="Run in this process, without Spark and Java.")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PAGE",
    help="Write the plan, the metrics and the history of the run as an HTML page; further jobs write PAGE-2 and so "
    "on.",
)
@click.option(
    "--serve",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve the job's page on this machine while the program runs: metrics, epochs, checkpoints, exceptions; 0 "
    "for any free port.",
)
@click.option(
    "--progress-log",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append a line of JSON for each epoch of unbounded jobs.",
)
@click.option(
    "--from",
    "restore_from",
    metavar="CHECKPOINT",
    help="Start from a checkpoint or savepoint, if the job has no checkpoint of its own yet.",
)
@click.option(
    "--allow-non-restored-state",
    is_flag=True,
    help="Discard state that no operator of the program claims.",
)
@click.option("--quiet", is_flag=True, help="Show neither progress nor the table at the end.")
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="Log to standard error, and show whole tracebacks; -vv logs more.",
)
def run(
    file: str,
    arguments: tuple[str, ...],
    settings: dict[str, str],
    local: bool,
    page: Path | None,
    port: int | None,
    progress_log: str | None,
    restore_from: str | None,
    allow_non_restored_state: bool,
    quiet: bool,
    verbose: int,
) -> None:
    """Runs FILE as 'python FILE ARGUMENTS' would, its jobs on Spark.

    A terminal shows the progress of the job. Without a terminal, standard error gets a line when a job begins, for each
    stage, and every 10 s. At the end standard error shows the metrics of each finished job. Ctrl-C cancels the job. An
    unbounded job finishes its epoch first; a second Ctrl-C aborts the epoch. Jobs that FILE starts but does not await,
    such as by execute_async(), run to their end.

    Columns: tasks (parallelism), in and out (records of the last epoch), in so far (records of the run),
    busy (share of time at work), skew (records of the busiest subtask over the mean, 1 is even),
    watermark (event time that all subtasks have passed), state (size at the last checkpoint, entries held),
    dropped late (records behind the watermark). Narrow terminals show fewer columns.

    Exit codes: 0 done, 1 FILE failed, 2 opchain refuses FILE, 130 Ctrl-C. FILE can set its own with sys.exit().

    The program gets ARGUMENTS and every option that is not listed here. Put -- before its own options of the same name.
    """
    path = whole_program(file)
    chosen = {
        "execution.target": "local" if local else None,
        "opchain.streaming.progress-log": progress_log,
        "execution.state-recovery.path": restore_from,
        "execution.state-recovery.ignore-unclaimed-state": (
            "true" if allow_non_restored_state else None
        ),
    }
    for output in [Path(each) for each in (page, progress_log) if each is not None]:
        check_folder_of(output)
    values = settings | {key: value for key, value in chosen.items() if value is not None}
    with (
        logging_to_stderr(verbose),
        showing_whole_tracebacks(verbose > 0 or wants_traceback()),
        configuring(values),
        watching_jobs() as jobs,
        watching_environments() as environments,
        nullcontext() if port is None else _serving(jobs, port),
        nullcontext() if page is None else _watching(jobs) as watches,
        ends_on_interrupt(jobs),
        as_main_program(path, arguments),
    ):
        try:
            with nullcontext() if quiet else showing_progress(jobs):
                try:
                    run_as_main(path)
                except SystemExit as end:
                    if end.code in (None, 0):
                        _await_background_jobs(jobs)
                    raise
                _await_background_jobs(jobs)
        except StreamError as error:
            is_refused = isinstance(error, _REFUSALS) and not isinstance(error, _MAY_PASS)
            has_run = not is_refused or any(map(has_failed, jobs))
            raise failure_of(error, path, while_it_ran=has_run) from error
        except Exception as error:  # noqa: BLE001 - printed as Python would
            _show_error(error, path, jobs, whole=verbose > 0 or wants_traceback())
            sys.exit(PROGRAM_FAILED)
        else:
            _note_unexecuted(path, environments)
        finally:
            if not quiet:
                show_finished(jobs)
            if watches is not None and page is not None:
                write_pages(watches.all(), page)


def _await_background_jobs(jobs: Sequence[StartedJob]) -> None:
    """Waits for jobs that the program has started but not awaited. On a cluster of Flink they would outlive it, too.

    The program alone reads the records of a job that collects them, so it has read the records that it needs.
    """
    for job in jobs:
        collects = any(
            isinstance(each, OperatorTransformation) and isinstance(each.spec, CollectSinkSpec)
            for each in job.plan.program.transformations
        )
        if not (job.run.is_awaited or collects or _was_cancelled(job)):
            job.run.get_job_execution_result().result()


def _show_error(
    error: Exception, program: Path, jobs: Sequence[StartedJob], *, whole: bool
) -> None:
    """Prints the exception of the program; one line if a command, a page or a client cancelled its job."""
    cancelled = [f"'{job.name}'" for job in jobs if _is_cancelled(job)]
    if isinstance(error, CancelledError) and cancelled:
        note(f"cancelled by a command, a page or a client: {', '.join(cancelled)}")
        return
    shown = user_traceback(error, program, whole=whole)
    to_stderr(shown.text, nl=False)
    if shown.is_shortened:
        note("the traceback is shortened; 'opchain run -v' shows all of it")
    hint = hint_for(error)
    if hint is not None:
        note(hint)


def _note_unexecuted(path: Path, environments: Capture) -> None:
    for left in environments.never_executed():
        note(
            f"{path} ended without env.execute() for some operators of its environment ({left.call_site}), so "
            "they did not run"
        )


@contextmanager
def _serving(jobs: Sequence[StartedJob], port: int) -> Iterator[None]:
    from opchain.compiler.monitoring.page_server import serving_pages  # noqa: PLC0415 - only with this option

    token = secrets.token_urlsafe(16)
    with serving_pages(jobs, port, token) as address:
        note(f"the job's page is at {address}?token={token}")
        yield


def _watching(jobs: Sequence[StartedJob]) -> AbstractContextManager[JobWatches]:
    from opchain.compiler.monitoring.job_watch import watching  # noqa: PLC0415 - only with this option

    return watching(jobs)


def has_failed(job: StartedJob) -> bool:
    """Whether a job has begun, and failed."""
    return job.run.has_begun and job.run.get_job_status().result() is JobStatus.FAILED


_REFUSALS = (CheckpointError, GraphError, MissingLibraryError, StateError)
"""Errors that a program has until it, its settings or its checkpoints are changed."""

_MAY_PASS = (CheckpointFailedError, CheckpointInUseError)

COMMANDS = (run,)
