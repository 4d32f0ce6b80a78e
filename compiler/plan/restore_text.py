"""Checkpoints, and what starting a program from one would do, as text."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.plan.diff import match_operators, state_problems
from opchain.compiler.plan.layout import DEFAULT_WIDTH, Paragraph, Row, counted, set_lines
from opchain.compiler.plan.model import from_json
from opchain.runtime.checkpoint.metadata import BATCH, BOUNDED, CLOCK, SOURCES, TIMER
from opchain.runtime.checkpoint.restore_plan import ProgramOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.compiler.plan.layout import Line
    from opchain.compiler.plan.model import JobPlan
    from opchain.runtime.checkpoint.metadata import (
        CheckpointMetadata,
        OperatorMetadata,
        SourcePosition,
    )
    from opchain.runtime.checkpoint.restore_plan import RestorePlan

_INDENT = " " * 10

_SAID_BY_IDS = frozenset({"orphaned", "max-parallelism", "parallelism"})
"""Problems between plans that the checkpoint itself tells as well, with what is stored in fact."""


def program_operators(plan: JobPlan) -> list[ProgramOperator]:
    """The operators of a plan, as a restore sees them."""
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
    """A line per checkpoint."""
    return set_lines([Row(_summary(metadata)) for metadata in checkpoints])


def checkpoint_text(metadata: CheckpointMetadata) -> str:
    """All that a checkpoint says of itself."""
    lines: list[Line] = [
        "  ".join(_summary(metadata)),
        f"job '{metadata.job_name}', run {metadata.run_id}",
    ]
    for operator in metadata.operators:
        files = {file.name: file for state in metadata.tasks_of(operator) for file in state.files}
        size = sum(file.size for file in files.values())
        keyed = f", {operator.max_parallelism} key groups" if operator.is_keyed else ""
        kept_in = f"{counted(len(files), 'file')} with {bytes_text(size)}"
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
    """What starting a program from a checkpoint would do."""
    stateful = {operator.id for operator in program.operators if operator.state is not None}
    lines: list[Line] = []
    for operator, stored in restore.restored:
        moved = f", {stored.parallelism} -> {operator.parallelism} tasks"
        moved = moved if stored.parallelism != operator.parallelism else ""
        by = "" if _is_named(operator, stored) else ", by position"
        lines.append(Row(("restored", f"{operator} from {_stored(stored)}{moved}{by}")))
    lines += [
        Row(("new", f"{operator} starts without state"))
        for operator in restore.new
        if operator.operator_id in stateful
    ]
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


def bytes_text(size: int) -> str:
    """A number of bytes, to three digits.

    >>> bytes_text(999), bytes_text(12_345), bytes_text(5_000_000)
    ('999 B', '12.3 kB', '5 MB')
    """
    number, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:  # noqa: PLR2004 - decimal units
            break
        number, unit = number / 1000, larger
    return f"{number:.3g} {unit}"


def _position_lines(source: SourcePosition) -> list[str]:
    """How far a source was, or when the epoch was; none for a timer that nobody waits for."""
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
        bytes_text(sum(file.size for file in files)),
    )


def _is_named(operator: ProgramOperator, stored: OperatorMetadata) -> bool:
    """Whether the operator is found by a uid or uid hash, which a change of the graph leaves alone."""
    return operator.uid is not None or operator.uid_hash == stored.operator_id


def _stored(operator: OperatorMetadata) -> str:
    uid = "no uid" if operator.uid is None else f"uid '{operator.uid}'"
    return f"'{operator.name}' ({operator.call_site}, {uid}, id {operator.operator_id})"


def _notes(restore: RestorePlan, program: JobPlan) -> Sequence[str]:
    """What the plan in the checkpoint, where there is one, lets one say beyond ids."""
    if restore.metadata.plan is None:
        return ()
    before = from_json(json.dumps(restore.metadata.plan), "the plan in the checkpoint")
    matching = match_operators(before.operators, program.operators)
    notes = [
        f"{problem.text}: {problem.remedy}"
        for problem in state_problems(before, program, matching)
        if problem.code not in _SAID_BY_IDS
    ]
    for key in sorted({*before.settings, *program.settings}):
        was, now = (plan.settings.get(key, "not set") for plan in (before, program))
        if was != now:
            notes.append(f"setting {key} was {was}, and is {now}")
    return notes
