"""Matches the sources of a program with the positions in a checkpoint.

Spark's offset log identifies sources by number only, and so do the positions of opchain's own sources. If the order of
sources changed, a source would resume at the offset of another source, and would read records twice or skip them. So a
checkpoint stores the operator id of each number, and each source gets its old number. Bounded sources are read in a
single epoch, so a checkpoint only stores which of them have been read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.metadata import (
    NO_BATCH,
    CheckpointMetadata,
    SourceKind,
    StoredSource,
)
from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.errors import ALLOW_NON_RESTORED_STATE
from opchain.runtime.program.operator_specs import LegacySourceSpec, OperatorSpec, SourceSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.runtime.checkpoint.restore_plan import ProgramOperator
    from opchain.runtime.program.vertex_program import JobProgram


def source_kind(spec: OperatorSpec) -> SourceKind | None:
    """The kind of a source operator, or None if the operator is not a source."""
    if isinstance(spec, LegacySourceSpec):
        return (
            "bounded" if spec.is_bounded else None
        )  # unbounded legacy sources have no checkpoints
    if not isinstance(spec, SourceSpec):
        return None
    if spec.is_bounded:
        return "bounded"
    return "DataFrame" if isinstance(spec.source, SparkRowSource) else "positions"


def bounded_sources(job: JobProgram) -> tuple[StoredSource, ...]:
    """The bounded sources of a job. All of them are read in the first epoch."""
    return tuple(
        StoredSource(operator.operator_id, "bounded", operator.label)
        for operator in job.operators
        if source_kind(operator.spec) == "bounded"
    )


@dataclass(frozen=True, slots=True)
class MatchedSources:
    """How the sources of a program resume from a checkpoint.

    `order` has the unbounded sources in the order of Spark's log. `replaced` names sources that resume at the offset
    of another source, `reread` the sources that are read again, and `refused` the reasons why the job cannot start.
    """

    order: tuple[ProgramOperator, ...]
    replaced: tuple[str, ...] = ()
    reread: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def match_sources(
    metadata: CheckpointMetadata, operators: Sequence[ProgramOperator]
) -> MatchedSources:
    """The positions at which the sources of a program resume from a checkpoint.

    A source is found by the id of `set_uid_hash`, then by its operator id. If one unbounded source and one position are
    left, the source takes this position, because without uids the id of a source changes with the program.
    """
    sources = sorted(
        (operator for operator in operators if operator.source is not None),
        key=lambda operator: operator.operator_id,
    )
    unbounded = [operator for operator in sources if operator.source != "bounded"]
    read = metadata.input.bounded
    found, _ = _matched(read, sources)
    reread = [
        f"bounded source {item.label} has been read, and no source of the program has its id {item.operator_id} by "
        "uid or set_uid_hash(): a source that replaces it is read from the beginning, and records come twice"
        for item, operator in zip(read, found, strict=True)
        if operator is None
    ]
    stored = metadata.input.unbounded
    if metadata.input.batch == NO_BATCH:
        names = ", ".join(item.label for item in stored or ()) or "unbounded sources"
        reread.append(
            f"Spark's offset log (the folder '{OFFSETS}') is missing from the checkpoint: {names} "
            "are read from the beginning, and records come twice; bounded sources are not read again"
        )
        stored = None
    if stored is None:
        return MatchedSources(tuple(unbounded), reread=tuple(reread))
    by_number, left = _matched(stored, unbounded)
    free = [number for number, operator in enumerate(by_number) if operator is None]
    replaced = []
    if len(left) == len(free) == 1:
        by_number[free[0]] = left.pop()
        gone = stored[free[0]].label
        replaced.append(
            f"{by_number[free[0]]} would take the position of {gone}, which is no longer a source of the program"
        )
        free = []
    changed = [
        f"{operator.label} is of another kind"
        for operator, item in zip(by_number, stored, strict=True)
        if operator is not None and operator.source != item.kind
    ]
    changed += [f"{operator.label} is new" for operator in left]
    changed += [f"{stored[number].label} is gone" for number in free]
    return MatchedSources(
        tuple(operator for operator in by_number if operator is not None),
        tuple(replaced),
        tuple(reread),
        tuple(_refusals(changed)),
    )


def _matched(
    stored: Sequence[StoredSource], sources: Sequence[ProgramOperator]
) -> tuple[list[ProgramOperator | None], list[ProgramOperator]]:
    """The source of the program for each stored one, or None; and the sources that match none."""
    found: list[ProgramOperator | None] = [None] * len(stored)
    left = list(sources)
    for is_named in (True, False):
        for number, item in enumerate(stored):
            if found[number] is not None:
                continue
            for source in left:
                if item.operator_id == (source.uid_hash if is_named else source.operator_id):
                    found[number] = source
                    left.remove(source)
                    break
    return found, left


def _refusals(changed: Sequence[str]) -> Iterable[str]:
    if changed:
        yield (
            "its unbounded sources have changed, but Spark's offset log has offsets only for the sources of the "
            f"checkpoint: {'; '.join(changed)}. Give each source the uid that it had. Or remove the folder "
            f"'{OFFSETS}' from a savepoint, start from it, and {ALLOW_NON_RESTORED_STATE}: state is "
            "restored, and unbounded sources are read from the beginning"
        )
