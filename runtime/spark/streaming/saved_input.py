"""What micro-batches read that are run again, where a job has gone back over several checkpoints.

Sinks have committed what these epochs wrote, and do not commit them twice: so each must read again what it read. Spark
itself does that for the first one alone, and plans the others again, with all that has come since. What its log had for
them is kept aside, and put back as soon as Spark has planned: the query is started again then, and runs what the log
says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.errors import StreamError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.storage import CheckpointStorage

_LOG, _KEPT = f"{OFFSETS}/offsets", "replaced-offsets"


class InputRestoredError(StreamError):
    """Spark's log has for a micro-batch what it had before: the query is to be started again."""


def save_input(storage: CheckpointStorage, last: int) -> None:
    """Moves aside what Spark's log has for the micro-batches behind one."""
    for name in storage.children(_LOG):
        number = name.removeprefix(".").removesuffix(".crc")
        if not number.isdecimal() or int(number) <= last:
            continue
        if name == number:
            storage.write(f"{_KEPT}/{name}", storage.read(f"{_LOG}/{name}"))
        storage.delete(f"{_LOG}/{name}")


class SavedInput:
    """What is kept in a storage when a run starts."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._batches = set(storage.children(_KEPT))

    def require(self, batch: int) -> None:
        """Makes sure that a micro-batch reads what was kept for it, if anything was.

        Raises:
            InputRestoredError: It was planned again; the log is mended.
        """
        if str(batch) not in self._batches:
            return
        storage = self._storage
        kept = storage.read(f"{_KEPT}/{batch}")
        if storage.read(f"{_LOG}/{batch}") == kept:
            return
        storage.delete(f"{_LOG}/.{batch}.crc")  # that of what Spark wrote
        storage.write(f"{_LOG}/{batch}", kept)
        raise InputRestoredError(f"{storage.url}: micro-batch {batch} has its input restored")

    def forget(self, batch: int) -> None:
        """Removes what was kept for a micro-batch, which has been run again."""
        if str(batch) in self._batches:
            self._storage.delete(f"{_KEPT}/{batch}")
            self._batches.discard(str(batch))
