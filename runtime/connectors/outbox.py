"""OutboxSink: stages records in the checkpoint directory; the driver sends them when the checkpoint is complete.

It is for targets that cannot hide records until a commit, but recognize a repeated request: by an idempotency key, by the
ids of documents, or by a note in the same transaction. KafkaSink stages its messages in files of the same kind.

The driver sends all pieces of an epoch under keys that never change. Then it creates a note beside the files,
`sent-<epoch>`, and deletes the files. So a missing file means one of two things:

- There is a note of its epoch or of a later one: everything was sent.
- There is no such note: the file was removed before it was sent. This is an error, since records would be lost.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import uuid
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from opchain.runtime.connectors.commit_sink import CommitSink, SinkEpoch
from opchain.runtime.errors import SinkError
from opchain.runtime.files.file_systems import file_system_of, joined, name_of, qualified_path
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Sequence


_NOTE = re.compile(r"sent-(\d+)")


class OutboxFile(NamedTuple):
    """A staged file, with its size and checksum."""

    path: str
    size: int
    checksum: bytes


def put_chunk(folder: str, data: bytes) -> OutboxFile:
    """Writes a file under a unique name."""
    path = joined(folder, uuid.uuid4().hex)
    files = file_system_of(path)
    stream = files.create(path)
    stream.write(data)
    files.complete(stream)
    return OutboxFile(path, len(data), _checksum(data))


def read_chunk(file: OutboxFile) -> bytes:
    """The content of a file.

    Raises:
        FileNotFoundError: The file is missing.
        ValueError: The file was cut short or altered.
    """
    with file_system_of(file.path).open_input(file.path) as stream:
        data: bytes = stream.read()
    if _checksum(data) != file.checksum:
        raise ValueError("was cut short or altered")
    return data


def delete_file(path: str) -> None:
    """Deletes a file, if it exists."""
    with suppress(FileNotFoundError):
        file_system_of(path).delete(path)


class OutboxSink(CommitSink[T]):
    """A sink with one method, `send`. Not in Flink.

    Records are pickled into the checkpoint directory, and sent by the driver in order, when the checkpoint is complete. A
    bounded job keeps them in the memory of the driver. If the driver dies while it sends, the records are sent again under
    the same keys.
    """

    batch_size = 1_000

    @abstractmethod
    def send(self, key: str, records: Sequence[T]) -> None:
        """Sends records, unless they were sent under this key before. Runs on the driver.

        Args:
            key: Identifies these records: the same text each time they are sent. It has the form
                `<owner>.<epoch>.<piece>.<digest of the records>`.
            records: 1 to `batch_size` records, the same each time.
        """

    def stage(self, owner: str, records: Sequence[T]) -> OutboxFile | bytes:
        """Writes records to a file in the checkpoint directory; without one, they are part of the committable."""
        data = pickle.dumps(list(records), pickle.HIGHEST_PROTOCOL)
        return data if self.staging is None else put_chunk(self._folder(owner), data)

    def commit(self, epoch: SinkEpoch, staged: Sequence[OutboxFile | bytes]) -> None:
        """Sends the records, unless the note says that they were sent.

        Raises:
            SinkError: Staged records that were never sent are missing.
        """
        files = [chunk for chunk in staged if not isinstance(chunk, bytes)]
        folder = files[0].path.rpartition("/")[0] if files else None
        if folder is None or max(_notes(folder), default=0) < epoch.number:
            for number, chunk in enumerate(staged, 1):
                # Safe to unpickle: the checksum of a file is part of the checkpoint's metadata.
                data = chunk if isinstance(chunk, bytes) else _read(chunk, epoch, folder)
                # If a job starts from a backup of its checkpoints, it may send other records in an epoch of the same
                # number. Without the digest they would have an old key, and the target would drop them.
                key = f"{epoch.key}.{number}.{_checksum(data).hex()[:16]}"
                self.send(key, pickle.loads(data))
        if folder is not None:
            _set_note(folder, epoch.number)
        for file in files:
            delete_file(file.path)

    def abort(self, owner: str) -> None:
        """Deletes staged files; notes stay."""
        if self.staging is None:
            return
        folder = self._folder(owner)
        content = file_system_of(folder).content(folder)
        self.confirm()
        for file in () if content is None else content.files:
            if _NOTE.fullmatch(name_of(file.path)) is None:
                delete_file(file.path)

    def _folder(self, owner: str) -> str:
        assert self.staging is not None
        return joined(qualified_path(self.staging), "sinks", owner)


def place_of(key: str) -> tuple[str, int, int]:
    """The owner, the epoch and the piece in a key of an OutboxSink."""
    owner, number, piece, _ = key.rsplit(".", 3)
    return owner, int(number), int(piece)


def _read(file: OutboxFile, epoch: SinkEpoch, folder: str | None) -> bytes:
    try:
        return read_chunk(file)
    except FileNotFoundError:
        problem = "is missing"
    except ValueError as error:
        problem = str(error)
    raise SinkError(
        f"{epoch.where}: records of checkpoint {epoch.number} that wait to be sent can't be read: {file.path} {problem}. "
        f"Restore the file, or create the empty file {folder}/sent-{epoch.number} to continue without the records, and "
        "start the job again"
    )


def _notes(folder: str) -> list[int]:
    content = file_system_of(folder).content(folder)
    names = [] if content is None else [name_of(file.path) for file in content.files]
    return sorted(int(match[1]) for match in map(_NOTE.fullmatch, names) if match is not None)


def _set_note(folder: str, number: int) -> None:
    notes = _notes(folder)
    if max(notes, default=0) < number:
        files = file_system_of(folder)
        files.touch(joined(folder, f"sent-{number}"))
        files.sync_folder(folder)
    for note in notes:
        if note < number:
            delete_file(joined(folder, f"sent-{note}"))


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
