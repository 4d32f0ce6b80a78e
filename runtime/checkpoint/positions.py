"""What a checkpoint of an unbounded job says of its epoch: what Spark calls it, and its times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata

BATCH = "spark batch"
"""The name under which a checkpoint keeps the number of its micro-batch."""

NO_BATCH = -1
"""The number of a micro-batch where a checkpoint came without Spark's log: sources are read from their beginning."""

TIMER = "next timer"
"""The name under which it keeps when the first processing-time timer is due."""

CLOCK = "clock"
"""The name under which it keeps what the clock of processing time showed in its epoch, in milliseconds."""

SOURCES = "unbounded sources"
"""The name under which it keeps its unbounded sources in the order in which Spark's log has them: the id of the
operator, who knows how far it has been read, and the operator as messages name it."""

BOUNDED = "bounded sources"
"""The name under which it keeps its bounded sources, which have been read: the id of the operator, and the operator
as messages name it."""


def position(metadata: CheckpointMetadata, name: str) -> Any:
    """What a checkpoint keeps under a name; None where it has nothing."""
    found = (item.position for item in metadata.sources if item.source == name)
    return next(found, None)
