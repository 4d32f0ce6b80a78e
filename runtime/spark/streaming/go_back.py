"""Goes on from an earlier checkpoint of the same run, with Spark's log as it was then.

The micro-batch behind that checkpoint is run again on the input that the log has for it: so its epoch gives the
same, and sinks that have committed it find that they have. Later ones are read anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.fall_back import fall_back
from opchain.runtime.checkpoint.positions import BATCH, position
from opchain.runtime.checkpoint.savepoint import OFFSETS

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
    from opchain.runtime.checkpoint.storage import CheckpointStorage


def go_back(storage: CheckpointStorage, coordinator: CheckpointCoordinator, url: str) -> None:
    """Drops damaged checkpoints behind the one at a path or URL, where that is one of the run's own.

    Raises:
        CorruptCheckpointError: It is not there, or damaged itself.
    """
    metadata = fall_back(storage, coordinator, url)
    if metadata is None:
        return
    last = position(metadata, BATCH)
    _forget(storage, "commits", last)
    _forget(storage, "offsets", last + 1)


def _forget(storage: CheckpointStorage, folder: str, last: int) -> None:
    """Removes the files of micro-batches behind one, and their checksums."""
    for name in storage.children(f"{OFFSETS}/{folder}"):
        number = name.removeprefix(".").removesuffix(".crc")
        if number.isdecimal() and int(number) > last:
            storage.delete(f"{OFFSETS}/{folder}/{name}")
