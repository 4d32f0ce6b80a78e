"""The unbounded sources of a job at their places in Spark's log: see checkpoint.source_places."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.metadata import SOURCES, SourcePosition
from opchain.runtime.checkpoint.restore_plan import program_operator
from opchain.runtime.checkpoint.source_places import source_places
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.restore_plan import ProgramOperator
    from opchain.runtime.spark.streaming.delivered_sources import DeliveredSource

_LOG = logging.getLogger("opchain.epochs")


def places_of(sources: Sequence[DeliveredSource]) -> SourcePosition:
    """Who is where, for a checkpoint."""
    operators = map(_operator, sources)
    return SourcePosition(
        SOURCES,
        [[operator.operator_id, operator.source, str(operator)] for operator in operators],
    )


def in_places(
    sources: Sequence[DeliveredSource], metadata: CheckpointMetadata | None
) -> tuple[DeliveredSource, ...]:
    """The sources in the order of the checkpoint that the job resumes from.

    Raises:
        CheckpointError: Sources are new, gone, or of another kind: Spark's log has no place for them.
    """
    if metadata is None:
        return tuple(sources)
    places = source_places(metadata, [_operator(item) for item in sources])
    if places.refused:
        raise CheckpointError(
            f"checkpoint {metadata.epoch} of '{metadata.job_name}': {'; '.join(places.refused)}"
        )
    for text in places.replaced:
        _LOG.warning("%s", text)
    by_id = {item.operator.operator_id: item for item in sources}
    return tuple(by_id[operator.operator_id] for operator in places.order)


def _operator(source: DeliveredSource) -> ProgramOperator:
    return program_operator(source.operator, source.parallelism, None)
