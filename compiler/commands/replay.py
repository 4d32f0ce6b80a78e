"""`opchain replay`: runs an epoch of an unbounded job again in this process, to compare or debug it."""

from __future__ import annotations

import pdb  # noqa: T100 - for --pdb
import sys
from bdb import BdbQuit
from typing import TYPE_CHECKING, Any

import click

from opchain.compiler.command_line.failures import (
    PROGRAM_FAILED,
    CommandError,
    clear_errors,
    user_traceback,
    wants_traceback,
)
from opchain.compiler.command_line.keys import key_of, literal
from opchain.compiler.command_line.output import answer, examples, note, to_stderr
from opchain.compiler.command_line.program_command import (
    ProgramCommand,
    Request,
    capture_job,
    takes_program,
)
from opchain.compiler.command_line.program_file import as_main_program, program_file
from opchain.compiler.commands.code import chosen_vertex, in_order_of_the_plan
from opchain.compiler.graph.plan import Plan, required
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.layout import counted
from opchain.runtime.checkpoint.savepoint import Located, find_checkpoint
from opchain.runtime.epochs.replay import (
    NO_KEY,
    Replayed,
    StateEntry,
    recorded_epoch,
    replay,
    run_again,
    stop_at,
)
from opchain.runtime.errors import StreamError, short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.epochs.epoch_task import EpochTask
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.shipping.outcome import JobOutcome

    Again = Callable[[Sequence[int] | None, Any, Callable[[EpochTask], None]], tuple[str, bool]]
    """Runs an epoch again; returns the text to print, and whether something differs."""

DIFFERS = 1
"""The exit code if the results differ."""

_SHOWN = 20


@click.command(
    "replay",
    cls=ProgramCommand,
    short_help="Runs an epoch of an unbounded job again, and compares results.",
    epilog=examples(
        "opchain replay /data/job job.py",
        "opchain replay /data/job job.py --epoch 12 --key Berlin --pdb",
    ),
)
@click.argument("checkpoint")
@click.argument("file")
@click.option(
    "--epoch",
    type=click.IntRange(min=1),
    metavar="N",
    help="The epoch; the last one by default.",
)
@click.option(
    "--vertex", metavar="V", help="Show one vertex: its number, its name, or an operator's uid."
)
@click.option(
    "--subtask", type=click.IntRange(min=0), metavar="S", help="Show one subtask of the vertex."
)
@click.option("--key", metavar="K", help="Show one key: a Python literal, or a string.")
@click.option(
    "--pdb",
    "debugs",
    is_flag=True,
    help="Open pdb at this vertex, subtask or key, and where a function raises an exception.",
)
@takes_program
@click.pass_context
def replay_command(
    context: click.Context,
    checkpoint: str,
    file: str,
    request: Request,
    epoch: int | None,
    vertex: str | None,
    subtask: int | None,
    key: str | None,
    debugs: bool,
) -> None:
    """Runs an epoch of FILE's unbounded job again, without Spark, and compares its results with the recorded ones.

    CHECKPOINT is the directory of the job's checkpoints, or one checkpoint in it (.../chk-12 means epoch 12). The job
    must have run with opchain.streaming.record-epochs = true. Sinks write nothing.

    An epoch that failed after the last checkpoint can be replayed without this setting, if all sources are opchain's
    own. Their input is read again. The error of the job shows the command (--epoch N).

    A replay unpickles the checkpoint, so its author can run code on this machine. Replay only checkpoints of your own
    jobs, or signed ones (-D execution.checkpointing.key-file=FILE).

    Exit codes: 0 the same results, 1 other results or an exception, 2 the program or checkpoint is in error.
    """
    program, _ = capture_job(file, request)
    with clear_errors():
        plan = compile_program(program)
        job = required(plan.job_program)
        located = find_checkpoint(checkpoint, key_of(program.settings.checkpoint_key_file))
        tasks = _tasks(plan, vertex, subtask)
        again = _again(job, located, epoch)
    looked_for = NO_KEY if key is None else literal(key)

    def prepare(task: EpochTask) -> None:
        is_chosen = key is not None if tasks is None else task.info.task in tasks
        if debugs and is_chosen:
            stop_at(task, looked_for, _under_debugger)

    try:
        with as_main_program(program_file(file).path, request.arguments):
            text, differs = again(tasks, looked_for, prepare)
    except BdbQuit:
        context.exit(DIFFERS)
    except StreamError as error:
        raise CommandError(str(error)) from error
    except Exception as error:  # noqa: BLE001 - printed as by Python
        shown = user_traceback(error, program_file(file).path, whole=wants_traceback())
        to_stderr(shown.text, nl=False)
        if shown.is_shortened:
            note("the traceback is shortened; 'opchain --traceback replay' shows all of it")
        if debugs:
            pdb.post_mortem(error.__traceback__)
        sys.exit(PROGRAM_FAILED)
    answer(text)
    if differs:
        context.exit(DIFFERS)


def _again(job: JobProgram, located: Located, epoch: int | None) -> Again:
    """Runs a recorded epoch, or the one that failed after the last checkpoint.

    Raises:
        StreamError: The epoch is not recorded.
    """
    storage, latest = located.storage, located.metadata
    if epoch == latest.checkpoint_id + 1 and latest.kind == "checkpoint":
        from opchain.runtime.epochs.delivered_sources import input_of_started_epoch  # noqa: PLC0415 - rarely needed

        deliveries = input_of_started_epoch(job, storage, latest)

        def run(_tasks: Any, _key: Any, prepare: Callable[[EpochTask], None]) -> tuple[str, bool]:
            outcome = run_again(job, storage, latest, deliveries, prepare)
            ends = f"epoch {epoch} of '{job.job_name}' ends without a failure here"
            return f"{ends}: {_counts(outcome)}\n", False

        return run
    recorded = recorded_epoch(storage, epoch or latest.checkpoint_id)

    def compare(
        tasks: Sequence[int] | None, key: Any, prepare: Callable[[EpochTask], None]
    ) -> tuple[str, bool]:
        found = replay(job, recorded, tasks, key, prepare)
        if key is not NO_KEY and not found.keyed:
            note(
                f"no state of key {short_repr(key)} is recorded, and none is replayed; --key takes a Python "
                "literal (1, \"'1'\", \"(1, 'a')\"), else text"
            )
        text = _text(found, recorded.metadata.checkpoint_id, recorded.metadata.job_name)
        return text, bool(found.differences)

    return compare


def _counts(outcome: JobOutcome) -> str:
    heads = (vertex.operators[0] for vertex in outcome.metrics.vertices)
    read = sum(head.records_in for head in heads if not head.input_watermarks)
    return f"{counted(read, 'record')} read"


def _under_debugger(process: Any, *arguments: Any) -> None:
    # The debugger stops in generated code and in the program's functions.
    pdb.Pdb(skip=["opchain.*"]).runcall(process, *arguments)


def _tasks(plan: Plan, chosen: str | None, subtask: int | None) -> Sequence[int] | None:
    """The selected tasks; None for all."""
    if chosen is None:
        if subtask is not None:
            raise CommandError("--subtask needs --vertex: it selects a subtask of that vertex")
        return None
    vertex = in_order_of_the_plan(plan)[chosen_vertex(plan, chosen) - 1]
    if subtask is None:
        return vertex.tasks
    if subtask >= vertex.parallelism:
        raise CommandError(
            f"'{vertex.name}' has {counted(vertex.parallelism, 'subtask')}, counted from 0; there is "
            f"no subtask {subtask}"
        )
    return [vertex.tasks[subtask]]


def _text(found: Replayed, epoch: int, job_name: str) -> str:
    sent = f"{counted(found.records, 'record')} sent, " if found.records else ""
    compared = f"{counted(found.tasks, 'task')}, {sent}{counted(found.entries, 'entry', 'entries')} of state"
    lines = [_keyed_line(*entries) for entries in found.keyed]
    if not found.differences:
        lines.append(f"epoch {epoch} of '{job_name}': the same ({compared})")
    else:
        lines.append(
            f"epoch {epoch} of '{job_name}': {counted(len(found.differences), 'difference')} ({compared})"
        )
        lines += [f"  {difference}" for difference in found.differences[:_SHOWN]]
        if len(found.differences) > _SHOWN:
            lines.append(f"  and {len(found.differences) - _SHOWN} more")
    return "".join(f"{line}\n" for line in lines)


def _keyed_line(
    before: StateEntry | None, recorded: StateEntry | None, replayed: StateEntry | None
) -> str:
    entry = recorded or replayed
    assert entry is not None, "an entry is recorded, or replayed, or both"
    values = [
        "nothing" if item is None else short_repr(item.value)
        for item in (before, recorded, replayed)
    ]
    return (
        f"{entry.name} of '{entry.operator}' of key {short_repr(entry.key)}: {values[0]} before, "
        f"{values[1]} recorded, {values[2]} replayed"
    )


COMMANDS = (replay_command,)
