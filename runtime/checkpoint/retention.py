"""Which files a place keeps: those of the last checkpoints, and those that may still be needed.

A state file may belong to many checkpoints, so it goes when the last checkpoint that refers to it does. Files
to which no checkpoint refers are left by attempts that lost, and by epochs that failed. They
go, too, once an epoch at or after theirs is complete: a task's chain only ever resumes from files of
the last epoch that it wrote, and those are in that checkpoint then.

Flink: `DefaultCompletedCheckpointStore`, `SharedStateRegistry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.epoch_files import completed_epochs, file_names
from opchain.runtime.checkpoint.metadata import read_metadata
from opchain.runtime.checkpoint.state_files import FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.storage import CheckpointStorage


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
