"""Finds checkpoints by path or URL, checks their files, and writes savepoints, which are self-contained copies.

A path or URL is one of three kinds: the checkpoint directory of a run, for its last checkpoint; one checkpoint in it
(`.../chk-12`); or a savepoint. A savepoint is a directory with one checkpoint and its metadata at the top. A run never
changes or removes a savepoint.

A run that starts from another run's checkpoint, or from a savepoint, copies it to its own directory. It also copies
Spark's log of offsets, which is beside the checkpoints, so the sources resume where the other run stopped. Without the
log, unbounded sources are read from their beginning, and the job starts only if non-restored state is allowed.

Flink: `SavepointMetadata`, canonical savepoints.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from opchain.runtime.checkpoint.checkpoint_key import RUNS_PICKLES, CheckpointKey
from opchain.runtime.checkpoint.epoch_files import publish_adopted
from opchain.runtime.checkpoint.metadata import (
    NO_BATCH,
    NO_INPUT,
    CheckpointMetadata,
    encode,
    latest_checkpoint,
    read_metadata,
    read_savepoint,
)
from opchain.runtime.checkpoint.state_files import decode
from opchain.runtime.checkpoint.storage import CheckpointStorage, StoredFile, checkpoint_storage
from opchain.runtime.errors import CheckpointError, CorruptCheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.runtime.checkpoint.run_lease import RunLease

METADATA = "_metadata"
"""The file at the top of a savepoint."""

OFFSETS = "spark"
"""The folder of Spark's log of offsets, beside the checkpoints."""
_CHECKPOINT_URL = re.compile(r"(?P<place>.+)/chk-(?P<id>\d+)(/_metadata)?/?")


class Located(NamedTuple):
    """A checkpoint, and the storage of its files."""

    storage: CheckpointStorage
    metadata: CheckpointMetadata

    def adopted(self) -> CheckpointMetadata:
        """The checkpoint for a run that starts from it. Without Spark's log, it is before the first micro-batch."""
        metadata = replace(self.metadata, kind="checkpoint")
        if metadata.input.batch is None or self.storage.children(OFFSETS):
            return metadata
        return replace(metadata, input=replace(metadata.input, batch=NO_BATCH, read_to=None))


def find_checkpoint(url: str, key: CheckpointKey | None = None) -> Located:
    """The checkpoint or savepoint at a path or URL. For a run's directory, this is its last checkpoint.

    Args:
        url: The path or URL.
        key: The key that must have signed it; None if it must not be signed.

    Raises:
        CheckpointKeyError: It is not signed by that key.
        CorruptCheckpointError: Its metadata is missing or can't be read.
        CheckpointError: There is none.
    """
    found = _CHECKPOINT_URL.fullmatch(url)
    if found is not None:
        storage = checkpoint_storage(found["place"], key)
        storage.require_folder()
        return Located(storage, read_metadata(storage, int(found["id"])))
    storage = checkpoint_storage(url.removesuffix(f"/{METADATA}"), key)
    storage.require_folder()
    if METADATA in storage.children():
        return Located(storage, read_savepoint(storage))
    latest = latest_checkpoint(storage)
    if latest is None:
        raise CheckpointError(
            f"{url} has no checkpoint and is not a savepoint; pass the directory of a run's "
            "checkpoints, one checkpoint in it (.../chk-12), or a savepoint"
        )
    return Located(storage, latest)


def checkpoint_id_in(storage: CheckpointStorage, url: str) -> int | None:
    """The number of the checkpoint at a path or URL, or None if it is not in this storage."""
    found = _CHECKPOINT_URL.fullmatch(url)
    if found is None or checkpoint_storage(found["place"]).url != storage.url:
        return None
    return int(found["id"])


def problems_of(checkpoint: Located) -> list[CorruptCheckpointError]:
    """The problems of a checkpoint's files. Reads and checks all of them."""
    found = []
    for file in checkpoint.metadata.files.values():
        try:
            decode(checkpoint.storage.get(file), checkpoint.storage.full_name(file.name))
        except CorruptCheckpointError as error:  # noqa: PERF203 - intact files don't raise
            found.append(error)
    for file in checkpoint.metadata.recorded_files.values():
        try:
            checkpoint.storage.get(file)
        except CorruptCheckpointError as error:  # noqa: PERF203 - likewise
            found.append(error)
    return found


def write_savepoint(
    checkpoint: Located,
    target: str,
    key: CheckpointKey | None = None,
    *,
    holds_state_alone: bool = False,
) -> CheckpointMetadata:
    """Copies a checkpoint with all its files to an empty directory.

    The metadata is written last, so an incomplete copy is not a savepoint.

    Args:
        checkpoint: The checkpoint to copy.
        target: The path or URL of the savepoint.
        key: Signs the copy; None for the key of the checkpoint, if it has one.
        holds_state_alone: Whether the copy has the state of operators, but no positions of sources. A job that starts
            from it reads all sources from their beginning.

    Raises:
        CorruptCheckpointError: A file is missing or altered.
        CheckpointError: The target is not empty, or can't be written to.
    """
    storage = checkpoint_storage(target, checkpoint.storage.key if key is None else key)
    empty_target(storage)
    copied = copied_files(checkpoint, storage, with_log=not holds_state_alone)
    metadata = replace(copied, kind="savepoint")
    if holds_state_alone:
        # No vertex has such an id, so no task restores watermarks and channels from it.
        tasks = [
            replace(task, vertex_id=f"state of {task.vertex_id}", event_time=b"", recorded=None)
            for task in metadata.tasks
        ]
        metadata = replace(metadata, tasks=tuple(tasks), input=NO_INPUT, committables=())
    try:
        storage.publish(METADATA, encode(metadata, storage.key))
    except FileExistsError:
        raise CheckpointError(
            f"{target} was written as another savepoint at the same time"
        ) from None
    return metadata


def empty_target(storage: CheckpointStorage) -> None:
    """Checks that the target of a savepoint is empty.

    Raises:
        CheckpointError: It is not empty.
    """
    if storage.children():
        raise CheckpointError(f"{storage.url} is not empty; use an empty directory for a savepoint")


def copied_files(
    checkpoint: Located, storage: CheckpointStorage, *, with_log: bool = True
) -> CheckpointMetadata:
    """Copies all files of a checkpoint, and Spark's log. Returns the checkpoint that refers to the copies.

    Raises:
        CorruptCheckpointError: A file is missing or altered.
        CheckpointError: A file can't be written.
    """
    files = {
        file.name: _write(storage, file.name, checkpoint.storage.get(file))
        for file in checkpoint.metadata.all_files.values()
    }
    for name in _names_of_log(checkpoint.storage) if with_log else ():
        # Spark may rename temporary files and remove old files while the job runs.
        with suppress(FileNotFoundError):
            _write(storage, name, checkpoint.storage.read(name))
    return checkpoint.metadata.with_files(files)


def _names_of_log(storage: CheckpointStorage) -> Iterator[str]:
    """The names of all files of the log, including files that replace others while the caller copies them.

    For example, a source that watches a folder merges the files of its log from time to time.
    """
    seen: set[str] = set()
    while names := set(storage.names(OFFSETS)) - seen:
        yield from sorted(names)
        seen |= names


def _write(storage: CheckpointStorage, name: str, data: bytes) -> StoredFile:
    try:
        return storage.put(name, data)
    except OSError as error:
        raise CheckpointError(
            f"{storage.full_name(name)} of the savepoint can't be written: {error.strerror or error}"
        ) from error


_LOG = logging.getLogger("opchain.epochs")

_NUMBERED = ("offsets", "commits")
"""The folders of Spark's log with a file for each micro-batch."""


def adopt(storage: CheckpointStorage, url: str, lease: RunLease) -> CheckpointMetadata:
    """Copies another run's checkpoint, or a savepoint, to the directory of this run.

    Args:
        storage: The run's checkpoint directory.
        url: The checkpoint.
        lease: The run's lease of its directory.

    Raises:
        CheckpointInUseError: Another run has taken over.
        CheckpointError: There is no checkpoint at `url`.
        CorruptCheckpointError: A file is missing or altered.
    """
    found = find_checkpoint(url, storage.key)
    if storage.key is None:
        _LOG.warning("%s", RUNS_PICKLES.format(url))
    metadata = found.adopted()
    for file in metadata.all_files.values():
        storage.write(file.name, found.storage.get(file))
    _copy_log(found.storage, storage, metadata.input.batch)
    data = encode(metadata, storage.key)
    try:
        publish_adopted(storage, metadata.checkpoint_id, data, lease.run.number, lease.require)
    except FileExistsError:
        lease.require()
        raise
    return metadata


def _copy_log(source: CheckpointStorage, target: CheckpointStorage, last: int | None) -> None:
    """Copies Spark's log up to a micro-batch."""
    for name in _names_of_log(source):
        folder, _, entry = name.removeprefix(f"{OFFSETS}/").partition("/")
        number = entry.removeprefix(".").removesuffix(".crc")  # with the checksums of an entry
        if folder in _NUMBERED and (last is None or not number.isdecimal() or int(number) > last):
            continue  # micro-batches after the checkpoint are run again
        with suppress(FileNotFoundError):  # the job of the checkpoint may run
            target.write(name, source.read(name))
