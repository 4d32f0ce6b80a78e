"""Starts a run from another run's checkpoint, or from a savepoint: copies it to where the run keeps its own.

Spark's log of offsets lies beside the checkpoints, and comes along: the job continues reading where the other
stopped. Without it unbounded sources are read from their beginning, and the job starts only if non-restored state is
allowed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.checkpoint_key import RUNS_PICKLES
from opchain.runtime.checkpoint.epoch_files import publish_adopted
from opchain.runtime.checkpoint.metadata import BATCH, encode, position
from opchain.runtime.checkpoint.savepoint import OFFSETS, find_checkpoint

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.run_lease import RunLease
    from opchain.runtime.checkpoint.storage import CheckpointStorage

_LOG = logging.getLogger("opchain.epochs")

_NUMBERED = ("offsets", "commits")
"""The folders of Spark's log with a file for each micro-batch."""


def adopt(storage: CheckpointStorage, url: str, lease: RunLease) -> CheckpointMetadata:
    """Copies the checkpoint at a path or URL.

    Args:
        storage: The run's place.
        url: The checkpoint.
        lease: The run's hold on its place.

    Raises:
        CheckpointInUseError: Another run has taken over.
        CheckpointError: There is none.
        CorruptCheckpointError: A file is missing or altered.
    """
    found = find_checkpoint(url, storage.key)
    if storage.key is None:
        _LOG.warning("%s", RUNS_PICKLES.format(url))
    metadata = found.adopted()
    for file in metadata.all_files.values():
        storage.write(file.name, found.storage.get(file))
    _copy_log(found.storage, storage, position(metadata, BATCH))
    data = encode(metadata, storage.key)
    try:
        publish_adopted(storage, metadata.epoch, data, lease.run.number, lease.require)
    except FileExistsError:
        lease.require()
        raise
    return metadata


def _copy_log(source: CheckpointStorage, target: CheckpointStorage, last: int) -> None:
    """Copies Spark's log up to a micro-batch."""
    for name in source.names(OFFSETS):
        folder, _, number = name.removeprefix(f"{OFFSETS}/").partition("/")
        if folder in _NUMBERED and (not number.isdecimal() or int(number) > last):
            continue  # micro-batches behind the checkpoint are run again
        target.write(name, source.read(name))
