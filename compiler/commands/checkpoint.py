"""`opchain checkpoint` and `opchain savepoint`; `opchain stop` and `opchain cancel` of running jobs.

They list checkpoints, check whether they are intact, and compare them with a program: which operators can be restored?
A request to a running job is a file in its checkpoint directory.
"""

from __future__ import annotations

import functools
import json
import os
import uuid
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from opchain.compiler.commands.failures import CommandError, clear_errors
from opchain.compiler.commands.output import answer, examples, note, output_width
from opchain.compiler.commands.program_command import (
    ProgramCommand,
    Request,
    captured_program,
    is_saved_plan,
    read_saved_plan,
    takes_program,
)
from opchain.compiler.graph.plan import required
from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.diff import match_operators, state_problems
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.layout import DEFAULT_WIDTH, Line, Paragraph, Row, counted, set_lines
from opchain.compiler.plan.model import JobPlan, from_json
from opchain.runtime.checkpoint.checkpoint_key import RUNS_PICKLES, CheckpointKey, read_key
from opchain.runtime.checkpoint.epoch_files import completed_epochs
from opchain.runtime.checkpoint.job_requests import JobRequest, Kind, await_answer, post
from opchain.runtime.checkpoint.metadata import (
    BATCH,
    BOUNDED,
    CLOCK,
    SOURCES,
    TIMER,
    CheckpointMetadata,
    OperatorMetadata,
    SourcePosition,
    StateDescription,
    position,
    read_metadata,
)
from opchain.runtime.checkpoint.restore_plan import ProgramOperator, RestorePlan, plan_restore
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
from opchain.runtime.measurements.table import size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram


def takes_key(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--key-file`; the command gets the key as `key`."""

    @click.option(
        "--key-file",
        metavar="FILE",
        help="The file with the key that signs the job's checkpoints (its execution.checkpointing.key-file).",
    )
    @functools.wraps(command)
    def with_key(key_file: str | None, **others: Any) -> None:
        command(key=key_of(key_file), **others)

    return with_key


def key_of(file: str | None) -> CheckpointKey | None:
    """The key in a file; None without a file."""
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
    """Sends a request to the job whose checkpoints are in a folder; returns the path of its savepoint, if it takes one.

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
    """An absolute path: the driver has another working directory."""
    return target if urlsplit(target).scheme else os.path.abspath(target)  # noqa: PTH100 - keeps links


@click.command(
    short_help="Stops JOB with a savepoint after the current epoch.",
    epilog=examples("opchain stop /data/job", "opchain stop /data/job /data/savepoint --drain"),
)
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


@click.command(
    short_help="Cancels JOB, without a savepoint.",
    epilog=examples("opchain cancel /data/job", "opchain cancel /data/job --timeout 30"),
)
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
"""The exit code if a file is damaged, or the program can't start."""


def _signature_line(found: Located) -> str:
    """The signature of a checkpoint; for an unsigned one, a warning about restoring it."""
    key = found.storage.key
    if key is not None:
        return f"signed by the key {key.identity}\n"
    return f"{RUNS_PICKLES.format(found.storage.url)}\n"


@click.group()
def checkpoint() -> None:
    """Looks at checkpoints and savepoints; without Spark.

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
        epochs = completed_epochs(storage)
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
    """Shows what is in CHECKPOINT: operators, states, positions of sources."""
    with clear_errors():
        found = find_checkpoint(checkpoint, key)
        answer(checkpoint_text(found.metadata))
        answer(_signature_line(found))


@checkpoint.command(
    short_help="Reads all files of CHECKPOINT; says which are missing or altered.",
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
    size = size_text(sum(file.size for file in files.values()))
    answer(f"{name}: {counted(len(files), 'file')} with {size}, whole\n")
    answer(_signature_line(found))


@checkpoint.command(
    cls=ProgramCommand,
    short_help="Says what FILE would start with, started from CHECKPOINT.",
    epilog=examples(
        "opchain checkpoint diff /data/job job.py",
        "opchain checkpoint diff /data/job/chk-12 job.py --allow-non-restored-state",
    ),
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
            f"'{operator.name}' ({operator.call_site}) could not be opened here "
            f"({type(error).__name__}: {error}): the types of its states are not compared"
        )
        return ()


@click.command(
    short_help="Copies CHECKPOINT to TARGET, or asks a running job for one.",
    epilog=examples(
        "opchain savepoint /data/job /data/savepoint",
        "opchain savepoint /data/job /data/signed --sign-with checkpoint.key",
    ),
)
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


_INDENT = " " * 10

_SHOWN_BY_RESTORE = frozenset({"orphaned", "max-parallelism", "parallelism"})
"""Problems between two plans that the checkpoint shows more precisely, by what it stores."""


def program_operators(plan: JobPlan) -> list[ProgramOperator]:
    """The operators of a plan, in the form that `plan_restore` takes."""
    found = []
    for vertex in plan.vertices:
        limit = None if vertex.max_parallelism == UNSET else vertex.max_parallelism
        for node in vertex.nodes:
            operator = plan.operator_at[node]
            found.append(
                ProgramOperator(
                    operator.id,
                    operator.name,
                    operator.call_site,
                    operator.parallelism,
                    limit,
                    operator.uid,
                    None if operator.user_id is None else operator.user_id.lower(),
                    source=operator.source,
                )
            )
    return found


def listing(checkpoints: Iterable[CheckpointMetadata]) -> str:
    """One line per checkpoint."""
    return set_lines([Row(_summary(metadata)) for metadata in checkpoints])


def checkpoint_text(metadata: CheckpointMetadata) -> str:
    """The contents of a checkpoint."""
    lines: list[Line] = [
        "  ".join(_summary(metadata)),
        f"job '{metadata.job_name}', run {metadata.run_id}",
    ]
    for operator in metadata.operators:
        files = {file.name: file for state in metadata.tasks_of(operator) for file in state.files}
        size = sum(file.size for file in files.values())
        keyed = f", {operator.max_parallelism} key groups" if operator.is_keyed else ""
        kept_in = f"{counted(len(files), 'file')} with {size_text(size)}"
        lines += [
            f"operator {_stored(operator)}",
            f"  {counted(operator.parallelism, 'task')}{keyed}, {kept_in}",
        ]
        lines += [Row(("  state", state.name, state.kind, state.type)) for state in operator.states]
    for source in metadata.sources:
        lines += _position_lines(source)
    if metadata.committables:
        lines.append(f"{counted(len(metadata.committables), 'committable')} of sinks")
    return set_lines(lines)


def restore_text(
    restore: RestorePlan,
    program: JobPlan,
    *,
    allow_non_restored_state: bool,
    width: int = DEFAULT_WIDTH,
) -> str:
    """What would happen if the program started from the checkpoint."""
    stateful = {operator.id for operator in program.operators if operator.state is not None}
    lines: list[Line] = []
    for operator, stored in restore.restored:
        moved = f", {stored.parallelism} -> {operator.parallelism} tasks"
        moved = moved if stored.parallelism != operator.parallelism else ""
        by = "" if _is_named(operator, stored) else ", by position"
        lines.append(Row(("restored", f"{operator} from {_stored(stored)}{moved}{by}")))
    for operator in restore.new:
        how = _resumed(restore, operator)
        if how is not None:
            lines.append(Row(("restored", f"{operator} {how}")))
        elif operator.operator_id in stateful:
            lines.append(Row(("new", f"{operator} starts without state")))
    for stored in restore.dropped:
        by = ", which no operator matches by position" if stored.uid is None else ""
        lines.append(Row(("dropped", f"the state of {_stored(stored)}{by}")))
    lines += [Paragraph(_INDENT, "reread    ", problem) for problem in restore.reread]
    lines += [Paragraph(_INDENT, "refused   ", problem) for problem in restore.refused]
    lines += [Paragraph(_INDENT, "note      ", text) for text in _notes(restore, program)]
    unnamed = [operator for operator, stored in restore.restored if not _is_named(operator, stored)]
    if unnamed:
        text = (
            f"{counted(len(unnamed), 'operator')} without uid {'is' if len(unnamed) == 1 else 'are'} found "
            "by position: adding or removing an operator changes positions. Call uid() or "
            "set_uid_hash() with the id shown, to keep the state"
        )
        lines.append(Paragraph(_INDENT, "note      ", text))
    if not restore.can_start(allow_non_restored_state=allow_non_restored_state):
        lines.append("the program can't start from this checkpoint")
        if restore.dropped and not allow_non_restored_state:
            lines.append("  --allow-non-restored-state would drop the state that no operator takes")
        if restore.reread and not allow_non_restored_state:
            lines.append("  --allow-non-restored-state would let sources be read again")
    else:
        lines.append("the program can start from this checkpoint")
    return set_lines(lines, width)


def _resumed(restore: RestorePlan, operator: ProgramOperator) -> str | None:
    """How an operator without state files resumes; None if the checkpoint has nothing of it."""
    metadata = restore.metadata
    if operator.source == "bounded":
        read = [stored_id for stored_id, _ in position(metadata, BOUNDED) or []]
        is_read = operator.operator_id in read or operator.uid_hash in read
        return "has been read to its end" if is_read else None
    if operator.source is not None:
        is_found = position(metadata, SOURCES) is not None
        return "from its position" if is_found and not (restore.refused or restore.reread) else None
    prepared = {committable.operator_id for committable in metadata.committables}
    is_prepared = operator.operator_id in prepared or operator.uid_hash in prepared
    return "commits what the checkpoint holds" if is_prepared else None


def _position_lines(source: SourcePosition) -> list[str]:
    """The position of a source, or the time of the epoch; no line if no timer is registered."""
    if source.source == BATCH:
        return [f"micro-batch {source.position} of Spark"]
    if source.source == SOURCES:
        return [
            f"source {number} of Spark's log: {operator} (id {operator_id})"
            for number, (operator_id, _, operator) in enumerate(source.position)
        ]
    if source.source == BOUNDED:
        return [f"bounded source, read: {named} (id {read})" for read, named in source.position]
    if source.source in (CLOCK, TIMER):
        said = "processing time" if source.source == CLOCK else "next timer of processing time"
        at = None if source.position is None else _utc(source.position)
        return [] if at is None else [f"{said} {at:%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"]
    return [f"source {source.source}: {json.dumps(source.position, sort_keys=True)}"]


def _utc(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)


def _summary(metadata: CheckpointMetadata) -> tuple[str, ...]:
    taken = _utc(metadata.timestamp_ms)
    files = metadata.files.values()
    return (
        f"{metadata.kind} {metadata.epoch}",
        f"{taken:%Y-%m-%d %H:%M:%S} UTC",
        counted(len(metadata.operators), "operator"),
        counted(len(metadata.tasks), "task"),
        counted(len(files), "file"),
        size_text(sum(file.size for file in files)),
    )


def _is_named(operator: ProgramOperator, stored: OperatorMetadata) -> bool:
    """Whether the operator is found by a uid or uid hash, which stay the same if the graph changes."""
    return operator.uid is not None or operator.uid_hash == stored.operator_id


def _stored(operator: OperatorMetadata) -> str:
    uid = "no uid" if operator.uid is None else f"uid '{operator.uid}'"
    return f"'{operator.name}' ({operator.call_site}, {uid}, id {operator.operator_id})"


def _notes(restore: RestorePlan, program: JobPlan) -> Sequence[str]:
    """Differences between the plan in the checkpoint, if it has one, and the program's plan."""
    if restore.metadata.plan is None:
        return ()
    before = from_json(json.dumps(restore.metadata.plan), "the plan in the checkpoint")
    matching = match_operators(before.operators, program.operators)
    notes = [
        f"{problem.text}: {problem.remedy}"
        for problem in state_problems(before, program, matching)
        if problem.code not in _SHOWN_BY_RESTORE
    ]
    for key in sorted({*before.settings, *program.settings}):
        was, now = (plan.settings.get(key, "not set") for plan in (before, program))
        if was != now:
            notes.append(f"setting {key} was {was}, and is {now}")
    return notes


COMMANDS = (cancel, checkpoint, savepoint, stop)
