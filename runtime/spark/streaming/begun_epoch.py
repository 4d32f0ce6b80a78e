"""The input of an epoch that was begun and has no checkpoint, read again from Spark's log.

`opchain replay` runs a failed epoch on it, without Spark's JVM. So only opchain's own sources can be read: Spark alone
can read the rows of a DataFrame.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.metadata import BATCH, position
from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.errors import CheckpointError, UnsupportedFeatureError
from opchain.runtime.spark.streaming.delivered_sources import of_this_run, unbounded_sources
from opchain.runtime.spark.streaming.input_log import in_places, offset_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.spark.streaming.delivered_sources import DeliveredSource


def can_be_replayed(sources: Sequence[DeliveredSource]) -> bool:
    """Whether all sources have positions."""
    return all(isinstance(item.source, UnboundedSource) for item in sources)


def begun_epoch(
    job: JobProgram, storage: CheckpointStorage, latest: CheckpointMetadata
) -> dict[int, list[bytes]]:
    """What the tasks of sources get in the epoch behind a checkpoint, by task.

    Raises:
        CheckpointError: No epoch was begun behind it, or the sources are not those of the checkpoint.
        UnsupportedFeatureError: A source is a DataFrame.
    """
    from opchain.runtime.spark.streaming.clock_source import (  # noqa: PLC0415 - pyspark may be missing
        POSITIONS,
        ClockReader,
        Deliveries,
    )

    sources = in_places(unbounded_sources(job), latest)
    for item in sources:
        if not isinstance(item.source, UnboundedSource):
            raise UnsupportedFeatureError(
                f"'{item.operator.name}' ({item.operator.call_site}) is a DataFrame of Spark, whose rows a replay of a "
                "failed epoch cannot read: run the job with opchain.streaming.record-epochs = true, and replay an "
                "epoch that is complete"
            )
    log, batch = f"{storage.url}/{OFFSETS}", position(latest, BATCH)
    start = None if batch is None else offset_of(log, batch, POSITIONS)
    end = None if batch is None else offset_of(log, batch + 1, POSITIONS)
    if start is None or end is None:
        raise CheckpointError(
            f"{storage.url}: no epoch was begun after checkpoint {latest.epoch}, so there is none to replay"
        )
    reader = ClockReader(
        [
            (number, of_this_run(item, log, None), item.parallelism)
            for number, item in enumerate(sources)
        ],
        Path(),
    )
    found: dict[int, list[bytes]] = {}
    for part in reader.partitions(start, end):
        assert isinstance(part, Deliveries)
        for number, subtask, split in part.rows:
            found.setdefault(sources[number].first_task + subtask, []).append(split)
    return found
