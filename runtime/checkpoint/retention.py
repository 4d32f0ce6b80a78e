"""Which files a checkpoint directory keeps, and the id that its runs share.

A state file may belong to many checkpoints. It is deleted with the last checkpoint that refers to it. Files without
a checkpoint are left by failed attempts and failed epochs. They are deleted once their epoch or a later one is
complete, because a task's chain only resumes from files of the last epoch that the task wrote, and the checkpoint
refers to those.

The id of the directory (its *lineage*) is a file. Sinks mark output with it until the output is committed. Only one
run at a time holds the directory's lease. So hidden output that has the mark, and is not in the last checkpoint,
belongs to no run and can be removed.

Flink: `DefaultCompletedCheckpointStore`, `SharedStateRegistry`.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.epoch_files import completed_epochs, file_names
from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.checkpoint.state_files import FOLDER
from opchain.runtime.errors import CorruptCheckpointError, short_repr

if TYPE_CHECKING:
    from collections.abc import Collection

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
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


def drop_checkpoint(
    storage: CheckpointStorage, dropped: CheckpointMetadata, kept: Collection[CheckpointMetadata]
) -> list[str]:
    """Removes a checkpoint and the files that no other refers to; gives their names.

    The metadata goes first: a checkpoint is never there without its files.
    """
    needed = {name for metadata in kept for name in metadata.all_files}
    for name in file_names(storage, dropped.epoch):  # its own comes last, fences before
        storage.delete(name)
    gone = [name for name in dropped.all_files if name not in needed]
    for name in gone:
        storage.delete(name)
    return gone


def sweep(storage: CheckpointStorage) -> list[str]:
    """Removes state files that nothing refers to and nothing will; gives their names.

    Args:
        storage: The place; only its owner may do this.

    Raises:
        CorruptCheckpointError: A checkpoint can't be read, so that its files are not known.
    """
    epochs = completed_epochs(storage)
    if not epochs:
        return []
    needed = {name for epoch in epochs for name in read_metadata(storage, epoch).all_files}
    gone = [
        f"{FOLDER}/{folder}/{name}"
        for folder in storage.children(FOLDER)
        if folder.isdecimal() and int(folder) <= epochs[-1]
        for name in storage.children(f"{FOLDER}/{folder}")
        if f"{FOLDER}/{folder}/{name}" not in needed
    ]
    for name in gone:
        storage.delete(name)
    return gone
