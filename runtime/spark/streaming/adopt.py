"""Starts a run from another run's checkpoint, or from a savepoint: copies it to where the run keeps its own.

Spark's log of offsets lies beside the checkpoints, and comes along: the job goes on reading where the other
stopped. Without it the state is restored and the sources are read from their beginning.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.metadata import SourcePosition, encode, metadata_name
from opchain.runtime.checkpoint.positions import BATCH, position
from opchain.runtime.checkpoint.savepoint import OFFSETS, find_checkpoint

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.storage import CheckpointStorage

_LOG = logging.getLogger(__name__)
_NUMBERED = ("offsets", "commits")
"""The folders of Spark's log with a file for each micro-batch."""


def adopt(storage: CheckpointStorage, url: str) -> CheckpointMetadata:
    """Copies the checkpoint at a path or URL.

    Raises:
        CheckpointError: There is none.
        CorruptCheckpointError: A file is missing or altered.
    """
    found = find_checkpoint(url)
    metadata = replace(found.metadata, kind="checkpoint")
    for file in metadata.all_files.values():
        storage.write(file.name, found.storage.get(file))
    if not _copy_log(found.storage, storage, position(metadata, BATCH)):
        _LOG.warning(
            "%s has no log of offsets: state is restored, and sources are read from their beginning",
            url,
        )
        others = (item for item in metadata.sources if item.source != BATCH)
        metadata = replace(metadata, sources=(*others, SourcePosition(BATCH, -1)))
    storage.publish(metadata_name(metadata.epoch), encode(metadata))
    return metadata


def _copy_log(source: CheckpointStorage, target: CheckpointStorage, last: int) -> bool:
    """Copies Spark's log up to a micro-batch; whether there is one."""
    names = source.names(OFFSETS)
    for name in names:
        folder, _, number = name.removeprefix(f"{OFFSETS}/").partition("/")
        if folder in _NUMBERED and (not number.isdecimal() or int(number) > last):
            continue  # micro-batches behind the checkpoint are run again
        target.write(name, source.read(name))
    return bool(names)
