"""Spark's log of offsets: read, checked for lost files, and reset to an earlier checkpoint.

A job in one process writes the same log, so that either engine can resume a job of the other.

- Sources learn from the driver how far an epoch has read. Before Spark 4.2 `latestOffset` has no argument, so a reader
  that is restarted needs the position of the last micro-batch.
- The log identifies sources by number. A checkpoint stores their ids: see runtime/checkpoint/source_numbers.py.
- Beside an entry is a file with its checksums, `.7.crc`, as Hadoop writes it to local disks. Both engines write and
  check it, because a changed position would skip or repeat input.
- A micro-batch that was started and has no checkpoint is run again on the input in the log. For a file stream the log
  contains paths. Spark reads those that exist, and would silently leave out a file that was removed.
- To resume from an earlier checkpoint, the log is reset to it. The later micro-batches run again on the same input, so
  their epochs give the same results, and sinks find their commits done. Spark itself repeats only the first of these
  micro-batches, and plans the others with all input that has arrived since. So their log entries are saved, and put
  back as soon as Spark has planned. Then the query starts again, and runs what the log says.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.fall_back import fall_back
from opchain.runtime.checkpoint.savepoint import OFFSETS, checkpoint_id_in
from opchain.runtime.checkpoint.storage import CheckpointStorage, checkpoint_storage
from opchain.runtime.errors import (
    ALLOW_NON_RESTORED_STATE,
    CheckpointError,
    CorruptCheckpointError,
    StreamError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator

_FOLDER = "offsets"
_QUERY, _VERSION = "metadata", "v1"
_KEPT_BATCHES = 100
"""The number of micro-batches in the log. It is Spark's default of `spark.sql.streaming.minBatchesToRetain`."""


def last_offset(log: str, key: str) -> dict[str, Any] | None:
    """The offset with this key of the last micro-batch in the log, or None if there is none.

    Args:
        log: Path or URL of the query's checkpoint.
        key: A key that only the offset of this source has.
    """
    numbers = [int(name) for name in checkpoint_storage(log).children(_FOLDER) if name.isdecimal()]
    return offset_of(log, max(numbers), key) if numbers else None


def offset_of(log: str, batch: int, key: str) -> dict[str, Any] | None:
    """The offset with this key of a micro-batch, or None if there is none.

    Args:
        log: Path or URL of the query's checkpoint.
        batch: The micro-batch.
        key: A key that only the offset of this source has.

    Raises:
        CorruptCheckpointError: The entry of the micro-batch is damaged.
    """
    text = _entry(log, batch)
    return None if text is None else next((item for item in _objects(text) if key in item), None)


def required_offset(log: str, batch: int, key: str) -> dict[str, Any] | None:
    """The offset with this key of a micro-batch, which must have one; None if the micro-batch has not begun.

    Raises:
        CorruptCheckpointError: The entry of the micro-batch is damaged.
    """
    found = offset_of(log, batch, key)
    if found is None and _entry(log, batch) is not None:
        raise _damaged(checkpoint_storage(log), batch, f"has no {key!r}")
    return found


def _entry(log: str, batch: int) -> str | None:
    """The log entry of a micro-batch, checked; None if there is none."""
    storage = checkpoint_storage(log)
    try:
        data = storage.read(f"{_FOLDER}/{batch}")
    except FileNotFoundError:
        return None
    try:
        sums = storage.read(_checksum_name(batch))
    except FileNotFoundError:  # not on a local disk, or the writer died before it
        sums = None
    if sums is not None and sums != checksums(data, int.from_bytes(sums[4:8], "big")):
        raise _damaged(
            storage, batch, f"does not match its checksums, the file {_checksum_name(batch)}"
        )
    return data.decode("utf-8", "replace")


def _checksum_name(batch: int) -> str:
    return f"{_FOLDER}/.{batch}.crc"


def _damaged(storage: CheckpointStorage, batch: int, problem: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        storage.full_name(f"{_FOLDER}/{batch}"),
        f"{problem}. It says how far the sources were read: restore the folder {storage.url} from a backup, or start "
        "with an earlier savepoint in another directory",
    )


def checksums(data: bytes, size: int = 512) -> bytes:
    """The content of the checksum file that Hadoop writes beside a file: a CRC for each `size` bytes."""
    starts = range(0, len(data), size or len(data) or 1)
    sums = (zlib.crc32(data[start : start + size]) for start in starts)
    return b"crc\0" + struct.pack(f">{len(starts) + 1}I", size, *sums)


def log_offset(log: str, batch: int, offset: dict[str, Any], now_ms: int) -> None:
    """Logs the input of a micro-batch in Spark's format, so that Spark can repeat it and continue from there.

    A driver that was replaced may still try this. So only the entry of the first micro-batch can be replaced, because it
    may be planned again. A checkpoint has the offset of its own micro-batch.

    Args:
        log: Path or URL of the query's checkpoint.
        batch: The micro-batch.
        offset: The offset of its one source.
        now_ms: The time, in milliseconds since 1970.

    Raises:
        FileExistsError: The micro-batch has an entry.
    """
    storage = checkpoint_storage(log)
    if _QUERY not in storage.children():
        storage.write(_QUERY, json.dumps({"id": str(uuid.uuid4())}).encode())
    of_batch = {"batchWatermarkMs": 0, "batchTimestampMs": now_ms, "conf": {}}
    lines = (_VERSION, json.dumps(of_batch), json.dumps(offset))
    data = "\n".join(lines).encode()
    # The checksum of an earlier entry must not remain if the driver dies here.
    storage.delete(_checksum_name(batch))
    write = storage.publish if batch else storage.write
    write(f"{_FOLDER}/{batch}", data)
    storage.write(_checksum_name(batch), checksums(data))


def is_batch_done(log: str, batch: int) -> bool:
    """Whether a micro-batch has ended: its epoch has a checkpoint, and its sinks have committed."""
    return str(batch) in checkpoint_storage(log).children("commits")


def mark_batch_done(log: str, batch: int) -> None:
    """Logs that a micro-batch has ended, as Spark does, and removes the entries of the oldest micro-batch."""
    storage = checkpoint_storage(log)
    text = f"{_VERSION}\n{json.dumps({'nextBatchWatermarkMs': 0})}"
    storage.write(f"commits/{batch}", text.encode())
    for folder in (_FOLDER, "commits"):
        storage.delete(f"{folder}/{batch - _KEPT_BATCHES}")
        storage.delete(f"{folder}/.{batch - _KEPT_BATCHES}.crc")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The lines that are JSON objects: the settings of the micro-batch, and then one offset per source."""
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


_FILES = "logOffset"


def require_log(storage: CheckpointStorage, done: int) -> None:
    """Checks that Spark's log has the micro-batch of the last checkpoint.

    Without it Spark would count micro-batches from 0 again. opchain skips micro-batches that have a checkpoint, so their
    input would be lost.

    Args:
        storage: The job's checkpoints, with Spark's log.
        done: The micro-batch of the last checkpoint; -1 if there is none.

    Raises:
        CheckpointError: The log does not have it.
    """
    if done >= 0 and str(done) not in storage.children(f"{OFFSETS}/offsets"):
        raise CheckpointError(
            f"{storage.url}: the last complete checkpoint is that of micro-batch {done}, and Spark's log, the "
            f"folder '{OFFSETS}', does not contain it: they do not belong together; restore both from one backup, or start "
            "with execution.state-recovery.path = this folder and another checkpoint directory, "
            f"and {ALLOW_NON_RESTORED_STATE}: sources are then read from their beginning"
        )


def files_to_read(storage: CheckpointStorage, done: int) -> Iterator[tuple[int, Sequence[str]]]:
    """The logged micro-batches after one, each with the URLs of the files that it reads."""
    begun = [int(name) for name in storage.children(f"{OFFSETS}/offsets") if name.isdecimal()]
    for batch in sorted(number for number in begun if number > done):
        before = _file_offsets(storage, batch - 1) if batch - 1 in begun else {}
        paths = [
            path
            for source, last in _file_offsets(storage, batch).items()
            for path in _logged(storage, source, range(before.get(source, -1) + 1, last + 1))
        ]
        yield batch, paths


def _file_offsets(storage: CheckpointStorage, batch: int) -> dict[int, int]:
    """The position of each file stream, by the number of the source."""
    # After the version and the settings there is one line for each source.
    lines = storage.read(f"{OFFSETS}/offsets/{batch}").decode().splitlines()[2:]
    offsets = ((number, _parsed(line)) for number, line in enumerate(lines))
    return {
        number: int(found[_FILES])
        for number, found in offsets
        if isinstance(found, dict) and _FILES in found
    }


def _logged(storage: CheckpointStorage, source: int, numbers: range) -> Iterator[str]:
    folder = f"{OFFSETS}/sources/{source}"
    names = set(storage.children(folder))
    for number in numbers:
        # Spark sometimes compacts all entries into one file.
        name = next((name for name in (str(number), f"{number}.compact") if name in names), None)
        if name is None:
            continue
        for line in storage.read(f"{folder}/{name}").decode().splitlines()[1:]:
            entry = _parsed(line)
            if isinstance(entry, dict) and entry.get("batchId") == number:
                yield entry["path"]


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


_COMMITS = f"{OFFSETS}/commits"


def reset_to_checkpoint(
    storage: CheckpointStorage, coordinator: CheckpointCoordinator, url: str
) -> None:
    """Drops damaged checkpoints after the checkpoint at `url`, if that belongs to this run's directory.

    Raises:
        CorruptCheckpointError: The checkpoint at `url` is missing or damaged.
    """
    fall_back(storage, coordinator, url)
    checkpoint_id = checkpoint_id_in(storage, url)
    metadata = None if checkpoint_id is None else coordinator.latest()
    last = None
    if metadata is not None and metadata.checkpoint_id == checkpoint_id:
        last = metadata.input.batch
    if last is None:
        return
    # Also if nothing was dropped now: an earlier driver may have died after dropping checkpoints.
    numbers = map(int, filter(str.isdecimal, storage.children(_COMMITS)))
    behind = [number for number in numbers if number > last]
    if not behind:
        return
    save_input(storage, last + 1)
    # The first commit is deleted last. If the driver dies before, the next one repeats the reset.
    for number in sorted(behind, reverse=True):
        storage.delete(f"{_COMMITS}/.{number}.crc")
        storage.delete(f"{_COMMITS}/{number}")


_OFFSET_LOG, _KEPT = f"{OFFSETS}/offsets", "replaced-offsets"


class InputRestoredError(StreamError):
    """The log entry of a micro-batch was restored, so the query must be started again."""


def save_input(storage: CheckpointStorage, last: int) -> None:
    """Moves the log entries of the micro-batches after one to a folder for saved entries."""
    for name in storage.children(_OFFSET_LOG):
        number = name.removeprefix(".").removesuffix(".crc")
        if not number.isdecimal() or int(number) <= last:
            continue
        if name == number:
            storage.write(f"{_KEPT}/{name}", storage.read(f"{_OFFSET_LOG}/{name}"))
        storage.delete(f"{_OFFSET_LOG}/{name}")


class SavedInput:
    """The saved log entries that exist when a run starts."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._batches = set(storage.children(_KEPT))

    def require(self, batch: int) -> None:
        """Checks that a micro-batch reads the saved input, if there is any.

        Raises:
            InputRestoredError: Spark has planned other input. The saved entry was restored.
        """
        if str(batch) not in self._batches:
            return
        storage = self._storage
        kept = storage.read(f"{_KEPT}/{batch}")
        if storage.read(f"{_OFFSET_LOG}/{batch}") == kept:
            return
        storage.delete(f"{_OFFSET_LOG}/.{batch}.crc")  # the checksum of the file that Spark wrote
        storage.write(f"{_OFFSET_LOG}/{batch}", kept)
        raise InputRestoredError(f"{storage.url}: micro-batch {batch} has its input restored")

    def forget(self, batch: int) -> None:
        """Removes the saved entry of a micro-batch after its repetition."""
        if str(batch) in self._batches:
            self._storage.delete(f"{_KEPT}/{batch}")
            self._batches.discard(str(batch))
