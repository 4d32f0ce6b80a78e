"""Which place in Spark's log each unbounded source has: the one that it had in the checkpoint.

Spark's log knows sources by their number alone, and so do the positions of opchain's own. In another order, one
would go on where another has stopped: read again what it has read, or leave out what it has not. So a checkpoint
keeps who was where, and a program's sources are put there.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.metadata import SourcePosition
from opchain.runtime.checkpoint.positions import BATCH, SOURCES, position
from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.connectors.fed_source import FedSource
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.spark.streaming.delivered_sources import DeliveredSource

_LOG = logging.getLogger("opchain.epochs")

_OF_SPARK, _OWN = "DataFrame", "positions"
"""Who keeps how far a source has been read: Spark for itself, or the clock source for opchain's own."""


def places_of(sources: Sequence[DeliveredSource]) -> SourcePosition:
    """Who is where, for a checkpoint."""
    return SourcePosition(
        SOURCES,
        [[item.operator.operator_id, _kind_of(item), _named(item)] for item in sources],
    )


def in_places(
    sources: Sequence[DeliveredSource], metadata: CheckpointMetadata | None
) -> tuple[DeliveredSource, ...]:
    """The sources in the order of the checkpoint that the job goes on from.

    A source is found by the id that `set_uid_hash` gave, then by its own. A single one that is not found takes
    the single place that is left: a program without uids gives its source another id when it changes.

    Raises:
        CheckpointError: Sources are new, gone, or of another kind: Spark's log has no place for them.
    """
    stored = None if metadata is None else position(metadata, SOURCES)
    if metadata is None or stored is None or position(metadata, BATCH) == -1:
        return tuple(sources)
    places: list[DeliveredSource | None] = [None] * len(stored)
    left = list(sources)
    for id_of in (_uid_hash, _operator_id):
        for number, (operator_id, _, _) in enumerate(stored):
            found = next((item for item in left if id_of(item) == operator_id), None)
            if found is not None and places[number] is None:
                places[number] = found
                left.remove(found)
    free = [number for number, item in enumerate(places) if item is None]
    if len(left) == len(free) == 1:
        _LOG.warning(
            "%s goes on where %s was, which is no source of the program any more",
            _named(left[0]),
            stored[free[0]][2],
        )
        places[free[0]] = left.pop()
        free = []
    taken = [item for item in places if item is not None]
    changed = [
        f"{_named(item)} is of another kind"
        for item, (_, kind, _) in zip(places, stored, strict=True)
        if item is not None and _kind_of(item) != kind
    ]
    changed += [f"{_named(item)} is new" for item in left]
    changed += [f"{stored[number][2]} is gone" for number in free]
    if changed:
        raise CheckpointError(
            f"the program's unbounded sources are not those of checkpoint {metadata.epoch} of "
            f"'{metadata.job_name}', and Spark's log of what was read has a place for those alone: "
            f"{'; '.join(changed)}. Give a source the uid that it had; or start from a savepoint whose folder "
            f"'{OFFSETS}' you have removed: state is restored then, and sources are read from their beginning"
        )
    return tuple(taken)


def _operator_id(source: DeliveredSource) -> str | None:
    return source.operator.operator_id


def _uid_hash(source: DeliveredSource) -> str | None:
    return source.operator.uid_hash


def _named(source: DeliveredSource) -> str:
    return f"'{source.operator.name}' ({source.operator.call_site})"


def _kind_of(source: DeliveredSource) -> str:
    found: Any = source.source
    return _OF_SPARK if isinstance(found, FedSource) else _OWN
