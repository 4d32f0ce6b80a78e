"""Resumes from an earlier checkpoint of the same run, with Spark's log as it was then.

The micro-batches behind that checkpoint are run again on the input that the log has for them (see saved_input): so
their epochs give the same, and sinks that have committed them find that they have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.fall_back import fall_back
from opchain.runtime.checkpoint.positions import BATCH, position
from opchain.runtime.checkpoint.savepoint import OFFSETS, epoch_in
from opchain.runtime.spark.streaming.saved_input import save_input

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
    from opchain.runtime.checkpoint.storage import CheckpointStorage

_COMMITS = f"{OFFSETS}/commits"


def go_back(storage: CheckpointStorage, coordinator: CheckpointCoordinator, url: str) -> None:
    """Drops damaged checkpoints behind the one at a path or URL, where that is one of the run's own.

    Raises:
        CorruptCheckpointError: It is not there, or damaged itself.
    """
    fall_back(storage, coordinator, url)
    epoch = epoch_in(storage, url)
    metadata = None if epoch is None else coordinator.latest()
    if metadata is None or metadata.epoch != epoch:
        return
    # Also where nothing was dropped now: a driver may have died that had come so far.
    last = position(metadata, BATCH)
    numbers = map(int, filter(str.isdecimal, storage.children(_COMMITS)))
    behind = [number for number in numbers if number > last]
    if not behind:
        return
    save_input(storage, last + 1)
    for number in sorted(
        behind, reverse=True
    ):  # the first goes last: as long as it is there, this is not over
        storage.delete(f"{_COMMITS}/.{number}.crc")
        storage.delete(f"{_COMMITS}/{number}")
