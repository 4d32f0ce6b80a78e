"""What all runs on one directory of checkpoints have in common, and no other run has: an id, in a file.

Sinks mark with it what they hide until it is committed. A run holds the directory's lease, so whatever
hidden output has the mark and is not in the last checkpoint belongs to nobody.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.storage import CheckpointStorage

_FILE = "lineage"


def lineage_of(storage: CheckpointStorage) -> str:
    """The id of a directory, which gets one where it has none; whoever calls holds the lease."""
    try:
        return storage.read(_FILE).decode()
    except FileNotFoundError:
        lineage = uuid.uuid4().hex
    try:
        storage.publish(_FILE, lineage.encode())
    except FileExistsError:  # by a run that has replaced this one meanwhile
        return storage.read(_FILE).decode()
    return lineage
