"""`opchain checkpoint` and `opchain savepoint`; `opchain stop` and `opchain cancel` of running jobs.

They list what is stored, check that it is intact, and tell which operators of a program can be restored from it. A running job is
asked through its checkpoint directory.
"""

from __future__ import annotations

import functools
import os
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from opchain.compiler.commands.failures import CommandError, clear_errors
from opchain.compiler.commands.output import answer, note, output_width
from opchain.compiler.commands.program_command import (
    PASSES_ARGUMENTS_ON,
    ProgramCommand,
    Request,
    captured_program,
    is_saved_plan,
    read_saved_plan,
    takes_program,
)
from opchain.compiler.graph.plan import made
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.layout import counted
from opchain.compiler.plan.restore_text import (
    bytes_text,
    checkpoint_text,
    listing,
    program_operators,
    restore_text,
)
from opchain.runtime.checkpoint.checkpoint_key import RUNS_PICKLES, CheckpointKey, read_key
from opchain.runtime.checkpoint.epoch_files import completed_epochs
from opchain.runtime.checkpoint.job_requests import JobRequest, Kind, await_answer, post
from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.checkpoint.restore_plan import plan_restore
from opchain.runtime.checkpoint.run_lease import running_run
from opchain.runtime.checkpoint.savepoint import (
    Located,
    find_checkpoint,
    problems_of,
    write_savepoint,
)
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.epochs.local_epochs import states_when_opened
from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.compiler.plan.model import JobPlan
    from opchain.runtime.checkpoint.metadata import StateDescription
    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram


def takes_key(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--key-file`; the command gets the key as `key`."""

    @click.option(
        "--key-file",
        metavar="FILE",
        help="The key that CHECKPOINT is signed by (execution.checkpointing.key-file of the job).",
    )
    @functools.wraps(command)
    def with_key(key_file: str | None, **others: Any) -> None:
        command(key=key_of(key_file), **others)

    return with_key


def key_of(file: str | None) -> CheckpointKey | None:
    """The key in a file that an option names; None where none is named."""
    with clear_errors():
        return None if file is None else read_key(file)


TIMEOUT_S = 600.0


def ask_job(
    job: str,
    kind: Kind,
    *,
    target: str | None = None,
    drain: bool = False,
    key: CheckpointKey | None = None,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Asks the job whose checkpoints are in a folder; the path of the savepoint, if it is to take one.

    Raises:
        CheckpointError: No job runs there, or it refuses.
    """
    storage = checkpoint_storage(job, key)
    request = JobRequest(
        uuid.uuid4().hex, kind, target=None if target is None else _absolute(target), drain=drain
    )
    post(storage, request)
    return str(await_answer(storage, request, timeout_s)["path"])


def _absolute(target: str) -> str:
    """The driver has another working directory."""
    return target if urlsplit(target).scheme else os.path.abspath(target)  # noqa: PTH100 - keeps links


@click.command(short_help="Stops JOB with a savepoint after the current epoch.")
@click.argument("job")
@click.argument("target", required=False)
@click.option("--drain", is_flag=True, help="End event time first: all windows fire.")
@click.option("--timeout", "timeout_s", default=TIMEOUT_S, help="Seconds to wait for the job.")
@takes_key
def stop(
    job: str, target: str | None, drain: bool, timeout_s: float, key: CheckpointKey | None
) -> None:
    """Stops the job whose checkpoints are in the folder JOB, and takes a savepoint.

    TARGET is a path or URL of a folder that is empty, as the job's driver sees it; without it the savepoint goes
    to a folder of its own in the job's execution.checkpointing.savepoint-dir. Any machine may ask that reaches JOB.

    Exit codes: 0 stopped, 2 no job runs there, or it refuses.
    """
    with clear_errors():
        path = ask_job(job, "stop", target=target, drain=drain, key=key, timeout_s=timeout_s)
    answer(f"stopped with savepoint {path}\n")


@click.command(short_help="Cancels JOB, without a savepoint.")
@click.argument("job")
@click.option("--timeout", "timeout_s", default=TIMEOUT_S, help="Seconds to wait for the job.")
@takes_key
def cancel(job: str, timeout_s: float, key: CheckpointKey | None) -> None:
    """Cancels the job whose checkpoints are in the folder JOB. Started again, it resumes from the last one.

    Exit codes: 0 cancelled, 2 no job runs there, or it refuses.
    """
    with clear_errors():
        ask_job(job, "cancel", key=key, timeout_s=timeout_s)
    answer("cancelled\n")


NO = 1
"""The exit code for an answer that is no: a file is broken, or the program can't start."""


def _signature_line(found: Located) -> str:
    """Who signed a checkpoint; what to think of before one is restored that nobody signed."""
    key = found.storage.key
    if key is not None:
        return f"signed by the key {key.identity}\n"
    return f"{RUNS_PICKLES.format(found.storage.url)}\n"


@click.group()
def checkpoint() -> None:
    """Looks at checkpoints and savepoints; without Spark.

    CHECKPOINT is the directory of a run's checkpoints (its last one is meant), one checkpoint in it
    (.../chk-12), or a savepoint; a path, or a URL that fsspec understands.
    """


@checkpoint.command("ls")
@click.argument("directory")
@takes_key
def list_checkpoints(directory: str, key: CheckpointKey | None) -> None:
    """Lists the checkpoints in DIRECTORY, the oldest first.

    Exit codes: 0 all can be listed, 2 some are damaged, or there are none.
    """
    with clear_errors():
        storage = checkpoint_storage(directory, key)
        epochs = completed_epochs(storage)
        if not epochs:
            raise CommandError(f"{directory} has no checkpoints")
        found, damaged = [], []
        for epoch in epochs:
            try:
                found.append(read_metadata(storage, epoch))
            except CorruptCheckpointError as error:  # noqa: PERF203 - those that are whole are listed
                damaged.append(str(error))
        answer(listing(found))
        if damaged:
            raise CommandError("; ".join(damaged))


@checkpoint.command(short_help="Shows the operators, states and positions in CHECKPOINT.")
@click.argument("checkpoint")
@takes_key
def show(checkpoint: str, key: CheckpointKey | None) -> None:
    """Shows what is in CHECKPOINT: operators, states, positions of sources."""
    with clear_errors():
        found = find_checkpoint(checkpoint, key)
        answer(checkpoint_text(found.metadata))
        answer(_signature_line(found))


@checkpoint.command(short_help="Reads all files of CHECKPOINT; says which are missing or altered.")
@click.argument("checkpoint")
@takes_key
@click.pass_context
def verify(context: click.Context, checkpoint: str, key: CheckpointKey | None) -> None:
    """Reads all files of CHECKPOINT, and says which are missing or altered.

    Exit codes: 0 all are whole, 1 some are not, 2 there is no such checkpoint.
    """
    with clear_errors():
        found = find_checkpoint(checkpoint, key)
        problems = problems_of(found)
    files = found.metadata.files
    for problem in problems:
        answer(f"{problem}\n")
    name = f"{found.metadata.kind} {found.metadata.epoch}"
    if problems:
        answer(f"{name}: {len(problems)} of {counted(len(files), 'file')} can't be read\n")
        context.exit(NO)
    size = bytes_text(sum(file.size for file in files.values()))
    answer(f"{name}: {counted(len(files), 'file')} with {size}, whole\n")
    answer(_signature_line(found))


@checkpoint.command(
    cls=ProgramCommand,
    context_settings=PASSES_ARGUMENTS_ON,
    short_help="Says what FILE would start with, started from CHECKPOINT.",
)
@click.argument("checkpoint")
@click.argument("file")
@click.option(
    "--allow-non-restored-state", is_flag=True, help="Drop state that no operator of FILE takes."
)
@takes_key
@takes_program
@click.pass_context
def diff(
    context: click.Context,
    checkpoint: str,
    file: str,
    request: Request,
    allow_non_restored_state: bool,
    key: CheckpointKey | None,
) -> None:
    """Says what FILE would start from, starting from CHECKPOINT: what is restored, dropped, new, refused.

    Functions with state in CHECKPOINT are opened in this process, because open() declares the types of their states.

    FILE is a program, which gets ARGUMENTS, or a plan saved with 'opchain plan FILE --format json'.

    Exit codes: 0 the program can start, 1 it can't, 2 the program or checkpoint is in error.
    """
    program, job, failure = _compiled(file, request)
    with clear_errors():
        metadata = find_checkpoint(checkpoint, key).adopted()
        operators = program_operators(program)
        restore = plan_restore(metadata, operators)
        if job is not None:
            opened = _opened_states(job, [operator.operator_id for operator, _ in restore.restored])
            operators = [
                replace(item, states=opened.get(item.operator_id, ())) for item in operators
            ]
            restore = plan_restore(metadata, operators)
        text = restore_text(
            restore,
            program,
            allow_non_restored_state=allow_non_restored_state,
            width=output_width(),
        )
    answer(text)
    if failure is not None:
        raise failure
    if not restore.can_start(allow_non_restored_state=allow_non_restored_state):
        context.exit(NO)


def _compiled(
    file: str, request: Request
) -> tuple[JobPlan, JobProgram | None, CommandError | None]:
    """The plan of FILE, and its job unless FILE is a saved plan; and how the program failed after its jobs."""
    if is_saved_plan(file):
        return read_saved_plan(file), None, None
    program, captured = captured_program(file, request)
    with clear_errors():
        compiled = compile_program(program)
        return job_plan(compiled), made(compiled.job_program), captured.failure


def _opened_states(
    job: JobProgram, operator_ids: Sequence[str]
) -> dict[str, tuple[StateDescription, ...]]:
    """The states that operators declare in open(); a note says where they can't be opened here."""
    return {
        operator.operator_id: _states_of(job, vertex.first_task, operator)
        for vertex in job.vertices
        for operator in vertex.operators
        if operator.operator_id in operator_ids
    }


def _states_of(
    job: JobProgram, task: int, operator: OperatorProgram
) -> tuple[StateDescription, ...]:
    try:
        return states_when_opened(job, task, operator.index)
    except Exception as error:  # noqa: BLE001 - whatever a function raises in open()
        note(
            f"'{operator.name}' ({operator.call_site}) could not be opened here "
            f"({type(error).__name__}: {error}): the types of its states are not compared"
        )
        return ()


@click.command(short_help="Copies CHECKPOINT to TARGET, or asks a running job for one.")
@click.argument("checkpoint")
@click.argument("target", required=False)
@takes_key
@click.option(
    "--sign-with",
    metavar="FILE",
    help="Sign TARGET with the key in FILE: for a CHECKPOINT that is not signed, or to change keys.",
)
@click.option("--copy", is_flag=True, help="Copy the last checkpoint, also of a job that runs.")
def savepoint(
    checkpoint: str,
    target: str | None,
    key: CheckpointKey | None,
    sign_with: str | None,
    copy: bool,
) -> None:
    """Takes a savepoint: TARGET gets all files of a checkpoint, needs nothing else, and is never removed.

    If CHECKPOINT is the folder of a running job, the job takes the savepoint after its current epoch; TARGET, as its
    driver sees it, may be left out then for execution.checkpointing.savepoint-dir. Else CHECKPOINT is as in
    'opchain checkpoint', and is copied. TARGET is a path or URL of a folder that is empty. Nothing of CHECKPOINT is
    unpickled.
    """
    new_key = key_of(sign_with)
    with clear_errors():
        if not copy and new_key is None and is_running(checkpoint, key):
            path = ask_job(checkpoint, "savepoint", target=target, key=key)
            answer(f"savepoint {path}\n")
            return
        if target is None:
            raise CommandError(
                f"no job runs with its checkpoints in {checkpoint}: give TARGET, to copy what is there"
            )
        found = find_checkpoint(checkpoint, key)
        written = write_savepoint(found, target, new_key)
        answer(checkpoint_text(written))
        answer(_signature_line(Located(checkpoint_storage(target, new_key or key), written)))


def is_running(checkpoint: str, key: CheckpointKey | None) -> bool:
    """Whether a job runs that has its checkpoints in this folder."""
    return running_run(checkpoint_storage(checkpoint, key)) is not None


COMMANDS = (
    cancel,
    checkpoint,
    savepoint,
    stop,
)
