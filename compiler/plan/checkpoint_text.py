"""The text of checkpoints: their contents, and what a program would restore."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.plan.diff import match_operators, state_problems
from opchain.compiler.plan.layout import DEFAULT_WIDTH, Line, Paragraph, Row, counted, set_lines
from opchain.compiler.plan.model import from_json
from opchain.runtime.checkpoint.restore_plan import ProgramOperator, RestorePlan
from opchain.runtime.checkpoint.source_numbers import match_sources
from opchain.runtime.measurements.table import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.compiler.plan.model import JobPlan
    from opchain.runtime.checkpoint.metadata import (
        CheckpointMetadata,
        EpochInput,
        OperatorMetadata,
    )

_INDENT = " " * 10

_SHOWN_BY_RESTORE = frozenset({"orphaned", "max-parallelism", "parallelism", "key-type"})
"""Problems between two plans for which the checkpoint itself has more precise information."""


def program_operators(plan: JobPlan) -> list[ProgramOperator]:
    """The operators of a plan, as arguments of `plan_restore`."""
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
                    key_types=operator.key_types,
                    kind=operator.kind,
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
        if operator.key_types:
            keyed += f", keys of type {', '.join(dict.fromkeys(operator.key_types))}"
        kept_in = f"{counted(len(files), 'file')} with {size_text(size)}"
        lines += [
            f"operator {_stored(operator)}",
            f"  {counted(operator.parallelism, 'task')}{keyed}, {kept_in}",
        ]
        lines += [Row(("  state", state.name, state.kind, state.type)) for state in operator.states]
    lines += _input_lines(metadata.input)
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
        lines.append(Row(("restored", f"{operator.label} from {_stored(stored)}{moved}{by}")))
    for operator in restore.new:
        how = _resumed(restore, operator)
        if how is not None:
            lines.append(Row(("restored", f"{operator.label} {how}")))
        elif operator.operator_id in stateful:
            lines.append(Row(("new", f"{operator.label} starts without state")))
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
            lines.append(
                "  --allow-non-restored-state would discard the state that no operator claims"
            )
        if restore.reread and not allow_non_restored_state:
            lines.append("  --allow-non-restored-state would let sources be read again")
    else:
        lines.append("the program can start from this checkpoint")
    return set_lines(lines, width)


def _resumed(restore: RestorePlan, operator: ProgramOperator) -> str | None:
    """How an operator without state files resumes. None if the checkpoint has nothing for it."""
    metadata = restore.metadata
    if operator.source == "bounded":
        read = [source.operator_id for source in metadata.input.bounded]
        is_read = operator.operator_id in read or operator.uid_hash in read
        return "has been read to its end" if is_read else None
    if operator.source is not None:
        matched = match_sources(metadata, (*(found for found, _ in restore.restored), *restore.new))
        is_found = metadata.input.unbounded is not None
        return "from its position" if is_found and not (matched.refused or restore.reread) else None
    prepared = {committable.operator_id for committable in metadata.committables}
    is_prepared = operator.operator_id in prepared or operator.uid_hash in prepared
    return "commits what the checkpoint holds" if is_prepared else None


def _input_lines(epoch_input: EpochInput) -> list[str]:
    """The micro-batch, the times and the sources of an epoch, as far as the checkpoint has them."""
    lines = [] if epoch_input.batch is None else [f"micro-batch {epoch_input.batch} of Spark"]
    for name, time_ms in (
        ("next timer of processing time", epoch_input.next_timer_ms),
        ("processing time", epoch_input.clock_ms),
    ):
        if time_ms is not None:
            lines.append(f"{name} {_utc(time_ms):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC")
    lines += [
        f"source {number} of Spark's log: {source.label} (id {source.operator_id})"
        for number, source in enumerate(epoch_input.unbounded or ())
    ]
    lines += [
        f"bounded source, read: {source.label} (id {source.operator_id})"
        for source in epoch_input.bounded
    ]
    return lines


def _utc(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)


def _summary(metadata: CheckpointMetadata) -> tuple[str, ...]:
    taken = _utc(metadata.timestamp_ms)
    files = metadata.files.values()
    return (
        f"{metadata.kind} {metadata.checkpoint_id}",
        f"{taken:%Y-%m-%d %H:%M:%S} UTC",
        counted(len(metadata.operators), "operator"),
        counted(len(metadata.tasks), "task"),
        counted(len(files), "file"),
        size_text(sum(file.size for file in files)),
    )


def _is_named(operator: ProgramOperator, stored: OperatorMetadata) -> bool:
    """Whether the operator is found by a uid or uid hash, which do not change with the graph."""
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
