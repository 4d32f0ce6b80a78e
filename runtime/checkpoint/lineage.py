"""What all runs on one directory of checkpoints have in common, and no other run has: an id, in a file.

Sinks mark with it what they hide until it is committed. A run holds the directory's lease, so whatever
hidden output has the mark and is not in the last checkpoint belongs to nobody.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

from opchain.runtime.errors import CorruptCheckpointError, short_repr

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.storage import CheckpointStorage

_FILE = "lineage"
_ID = re.compile(rb"[0-9a-f]{32}")


def lineage_of(storage: CheckpointStorage) -> str:
    """The id of a directory, which gets one where it has none; whoever calls holds the lease."""
    try:
        return _read(storage)
    except FileNotFoundError:
        lineage = uuid.uuid4().hex
    try:
        storage.publish(_FILE, lineage.encode())
    except FileExistsError:  # by a run that has replaced this one meanwhile
        return _read(storage)
    return lineage


def _read(storage: CheckpointStorage) -> str:
    """The id, which becomes a part of names of files.

    Raises:
        CorruptCheckpointError: The file holds something else.
    """
    data = storage.read(_FILE)
    if _ID.fullmatch(data) is None:
        raise CorruptCheckpointError(
            storage.full_name(_FILE),
            f"holds {short_repr(data)}, but 32 hexadecimal digits are expected: restore the file "
            f"from a backup. Without it, hidden output that earlier runs wrote and did not "
            f"commit is never cleaned up",
        )
    return data.decode("ascii")
