"""`opchain run`: runs a program as `python FILE` would."""

from __future__ import annotations

import runpy
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opchain.compiler.commands.failures import PROGRAM_FAILED, failure_of, hint_for, wants_traceback
from opchain.compiler.commands.finished_jobs import show_finished, write_pages
from opchain.compiler.commands.interrupt import ends_on_interrupt
from opchain.compiler.commands.log_output import logging_to_stderr
from opchain.compiler.commands.main_program import as_main_program
from opchain.compiler.commands.output import check_folder_of, note
from opchain.compiler.commands.program_arguments import (
    PASSES_ARGUMENTS_ON,
    takes_arguments,
    takes_settings,
)
from opchain.compiler.commands.program_command import ProgramCommand
from opchain.compiler.commands.program_file import whole_program
from opchain.compiler.commands.progress import showing_progress
from opchain.compiler.commands.user_traceback import user_traceback
from opchain.compiler.dsl.interception import configuring, watching_environments, watching_jobs
from opchain.runtime.errors import StreamError
from opchain.runtime.job.status import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.dsl.interception import Capture, StartedJob


@click.command(cls=ProgramCommand, context_settings=PASSES_ARGUMENTS_ON)
@click.argument("file")
@takes_arguments
@takes_settings
@click.option("--local", is_flag=True, help="Run in this process, without Spark and Java.")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PAGE",
    help="Write the plan with its numbers as an HTML page; PAGE-2 and so on for further jobs.",
)
@click.option(
    "--serve",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve the plan page on this machine while the program runs, with its numbers as they come; 0 "
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
    help="Start from a checkpoint or savepoint, where the job's own checkpoints have none yet.",
)
@click.option(
    "--allow-non-restored-state",
    is_flag=True,
    help="Drop state that no operator of the program takes.",
)
@click.option("--quiet", is_flag=True, help="Show neither progress nor the table at the end.")
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="Log what opchain does to standard error, and show whole tracebacks; -vv in detail.",
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

    A terminal shows how far the job is; at the end standard error shows what the operators of each finished
    job have counted. Ctrl-C cancels the job; an unbounded one ends its epoch first, unless Ctrl-C comes
    again.

    Exit codes: that of FILE if it ends itself, 0 done, 1 FILE failed, 2 opchain refuses it, 130 Ctrl-C.

    The program gets ARGUMENTS and every option that is not listed here; use -- in front of its own
    options of the same name.
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
    if page is not None:
        check_folder_of(page)
    values = settings | {key: value for key, value in chosen.items() if value is not None}
    with (
        logging_to_stderr(verbose),
        configuring(values),
        watching_jobs() as jobs,
        watching_environments() as drawn,
        nullcontext() if port is None else _serving(jobs, port),
        ends_on_interrupt(jobs),
        as_main_program(path, arguments),
    ):
        try:
            with nullcontext() if quiet else showing_progress(jobs):
                runpy.run_path(str(path), run_name="__main__")
        except StreamError as error:
            raise failure_of(error, path, while_it_ran=any(map(has_failed, jobs))) from error
        except Exception as error:  # noqa: BLE001 - printed as Python would
            told = user_traceback(error, path, whole=verbose > 0 or wants_traceback())
            click.echo(told.text, nl=False, err=True)
            if told.is_shortened:
                note("calls inside opchain are left out; 'opchain run -v' shows them")
            hint = hint_for(error)
            if hint is not None:
                note(hint)
            sys.exit(PROGRAM_FAILED)
        else:
            if not quiet:
                _note_what_did_not_run(path, drawn)
        finally:
            if not quiet:
                show_finished(jobs)
            if page is not None:
                write_pages(jobs, page)


def _note_what_did_not_run(path: Path, drawn: Capture) -> None:
    for left in drawn.never_executed():
        note(
            f"{path} never executes what its environment ({left.call_site}) holds now; call execute()"
        )


@contextmanager
def _serving(jobs: Sequence[StartedJob], port: int) -> Iterator[None]:
    from opchain.compiler.commands.page_server import serving_pages  # noqa: PLC0415 - if asked for

    with serving_pages(jobs, port) as address:
        note(f"the plan page is at {address}")
        yield


def has_failed(job: StartedJob) -> bool:
    """Whether a job has begun and did not end well."""
    return job.client.get_job_status().result() is JobStatus.FAILED
