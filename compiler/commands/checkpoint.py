"""`opchain checkpoint`: lists checkpoints, verifies their files, and compares them with a program."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from opchain.compiler.command_line.failures import CommandError, clear_errors
from opchain.compiler.command_line.keys import takes_key
from opchain.compiler.command_line.output import answer, examples, note, output_width
from opchain.compiler.command_line.program_command import (
    ProgramCommand,
    Request,
    captured_program,
    is_saved_plan,
    read_saved_plan,
    takes_program,
)
from opchain.compiler.graph.plan import required
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.checkpoint_text import (
    checkpoint_text,
    listing,
    program_operators,
    restore_text,
)
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.layout import counted
from opchain.runtime.checkpoint.checkpoint_key import RUNS_PICKLES, CheckpointKey
from opchain.runtime.checkpoint.epoch_files import completed_checkpoints
from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.checkpoint.restore_plan import plan_restore
from opchain.runtime.checkpoint.savepoint import Located, find_checkpoint, problems_of
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.epochs.local_epochs import states_when_opened
from opchain.runtime.errors import CorruptCheckpointError
from opchain.runtime.measurements.table import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.plan.model import JobPlan
    from opchain.runtime.checkpoint.metadata import StateDescription
    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram


NO = 1
"""The exit code if a file is damaged, or the program can't start."""


def show_signature(found: Located) -> None:
    """Prints the signature of a checkpoint, or a note on standard error that it is not signed."""
    key = found.storage.key
    if key is None:
        note(RUNS_PICKLES.format(found.storage.url))
    else:
        answer(f"signed by the key {key.identity}\n")


@click.group(
    epilog=examples("opchain checkpoint ls /data/job", "opchain checkpoint diff /data/job job.py")
)
def checkpoint() -> None:
    """Shows, verifies and compares checkpoints and savepoints.

    CHECKPOINT is the directory of a run's checkpoints (the last one is used), one checkpoint in it
    (.../chk-12), or a savepoint; a path, or a URL that fsspec understands.
    """


@checkpoint.command(
    "ls",
    epilog=examples(
        "opchain checkpoint ls /data/job",
        "opchain checkpoint ls s3://bucket/job --key-file checkpoint.key",
    ),
)
@click.argument("directory")
@takes_key
def list_checkpoints(directory: str, key: CheckpointKey | None) -> None:
    """Lists the checkpoints in DIRECTORY, the oldest first.

    Exit codes: 0 all can be listed, 2 some are damaged, or there are none.
    """
    with clear_errors():
        storage = checkpoint_storage(directory, key)
        storage.require_folder()
        epochs = completed_checkpoints(storage)
        if not epochs:
            raise CommandError(f"{directory} has no checkpoints")
        found, damaged = [], []
        for epoch in epochs:
            try:
                found.append(read_metadata(storage, epoch))
            except CorruptCheckpointError as error:  # noqa: PERF203 - intact checkpoints are listed
                damaged.append(str(error))
        answer(listing(found))
        if damaged:
            raise CommandError("; ".join(damaged))


@checkpoint.command(
    short_help="Shows the operators, states and positions in CHECKPOINT.",
    epilog=examples(
        "opchain checkpoint show /data/job", "opchain checkpoint show /data/job/chk-12"
    ),
)
@click.argument("checkpoint")
@takes_key
def show(checkpoint: str, key: CheckpointKey | None) -> None:
    """Shows the operators, states and source positions in CHECKPOINT."""
    with clear_errors():
        found = find_checkpoint(checkpoint, key)
        answer(checkpoint_text(found.metadata))
        show_signature(found)


@checkpoint.command(
    short_help="Verifies that all files of CHECKPOINT exist and are intact.",
    epilog=examples(
        "opchain checkpoint verify /data/job",
        "opchain checkpoint verify /data/savepoint --key-file checkpoint.key",
    ),
)
@click.argument("checkpoint")
@takes_key
@click.pass_context
def verify(context: click.Context, checkpoint: str, key: CheckpointKey | None) -> None:
    """Reads all files of CHECKPOINT, and says which are missing or altered.

    Exit codes: 0 all files are intact, 1 some are not, 2 there is no such checkpoint.
    """
    with clear_errors():
        found = find_checkpoint(checkpoint, key)
        problems = problems_of(found)
    files = found.metadata.files
    for problem in problems:
        answer(f"{problem}\n")
    name = f"{found.metadata.kind} {found.metadata.checkpoint_id}"
    if problems:
        answer(f"{name}: {len(problems)} of {counted(len(files), 'file')} can't be read\n")
        context.exit(NO)
    size = size_text(sum(file.size for file in files.values()))
    answer(f"{name}: {counted(len(files), 'file')} with {size}, intact\n")
    show_signature(found)


@checkpoint.command(
    cls=ProgramCommand,
    short_help="Shows the state that FILE would restore from CHECKPOINT.",
    epilog=examples(
        "opchain checkpoint diff /data/job job.py",
        "opchain checkpoint diff /data/job/chk-12 job.py --allow-non-restored-state",
    ),
)
@click.argument("checkpoint")
@click.argument("file")
@click.option(
    "--allow-non-restored-state",
    is_flag=True,
    help="Discard state that no operator of FILE claims.",
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
    """Shows the state that FILE would restore from CHECKPOINT: per operator restored, new, dropped or refused.

    This calls open() of functions that have state in CHECKPOINT, because open() declares the types of states.

    FILE is a program, which gets ARGUMENTS, or a plan saved with 'opchain plan FILE --format json'.

    Exit codes: 0 the program can start, 1 it can't, 2 the program or checkpoint is in error.
    """
    with clear_errors(), _compiled(file, request) as (program, job):
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
    if not restore.can_start(allow_non_restored_state=allow_non_restored_state):
        context.exit(NO)


@contextmanager
def _compiled(file: str, request: Request) -> Iterator[tuple[JobPlan, JobProgram | None]]:
    """Gives the block the plan of FILE, and its job unless FILE is a saved plan; see `captured_program`."""
    if is_saved_plan(file):
        yield read_saved_plan(file), None
        return
    with captured_program(file, request) as program:
        compiled = compile_program(program)
        yield job_plan(compiled), required(compiled.job_program)


def _opened_states(
    job: JobProgram, operator_ids: Sequence[str]
) -> dict[str, tuple[StateDescription, ...]]:
    """The states that operators declare in open(). A note names operators that can't be opened here."""
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
    except Exception as error:  # noqa: BLE001 - open() of a function may raise anything
        note(
            f"{operator.label} could not be opened here "
            f"({type(error).__name__}: {error}): the types of its states are not compared"
        )
        return ()


COMMANDS = (checkpoint,)
