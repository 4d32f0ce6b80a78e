"""Where the files of checkpoints are: a directory or an object store, behind five operations.

A file is written once and never changed. `put` makes a file whose name is the caller's own; `publish`
is the one step by which several writers find out who was first. Both leave no half-written file under the
name, wherever the process dies.

- A local path or `file://` URL needs the standard library alone. A put writes a temporary file beside
  the place, syncs it, and renames it; a publish links instead of renaming, which fails where the name exists.
- Any other URL goes through fsspec, where it is installed. A put of an object store is atomic by itself; a
  publish is a put on the condition that there is no such object. Stores that can't do that are refused.

Flink: `CheckpointStorageCoordinatorView`, `FsCheckpointStreamFactory`, `FsCheckpointMetadataOutputStream`.
"""

from __future__ import annotations

import hashlib
import hmac
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opchain.runtime.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey

TEMPORARY = ".tmp"
"""How the names of files end that are being written; `names` leaves them out."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as whoever wrote it knows it: its name in the storage, bytes, and checksum."""

    name: str
    size: int
    checksum: str


class CheckpointStorage(ABC):
    """One place for checkpoints; made by `checkpoint_storage`. Picklable: tasks write through it, too.

    Names are relative to `url`, with slashes. A name that leads out of `url` (absolute, with `..`, or over a
    symbolic link) raises CorruptCheckpointError in each of these calls: names come from files of the checkpoint,
    which somebody else may have written.

    Attributes:
        url: The place.
        key: Signs metadata and files; None if checkpoints are not signed.
    """

    url: str
    key: CheckpointKey | None = None

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Makes a file, or replaces one, in one step."""

    @abstractmethod
    def publish(self, name: str, data: bytes) -> None:
        """Makes a file in one step, which fails where there is one of that name.

        Raises:
            FileExistsError: There is.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: There is none.
        """

    @abstractmethod
    def names(self, prefix: str = "") -> list[str]:
        """The names of all files in a folder and below it, sorted; `prefix` is the folder."""

    @abstractmethod
    def children(self, folder: str = "") -> list[str]:
        """The names, without their folder, of the files and folders in a folder, sorted."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Removes a file; nothing happens where there is none."""

    def put(self, name: str, data: bytes) -> StoredFile:
        """Makes a file in one step, and gives what `get` checks it by."""
        self.write(name, data)
        return StoredFile(name, len(data), file_checksum(data, self.key))

    def get(self, file: StoredFile) -> bytes:
        """The content of a file, checked.

        Raises:
            CorruptCheckpointError: It is missing, cut short, or altered.
        """
        try:
            data = self.read(file.name)
        except FileNotFoundError:
            raise CorruptCheckpointError(self.full_name(file.name), "is missing") from None
        if len(data) != file.size:
            raise CorruptCheckpointError(
                self.full_name(file.name), f"has {len(data)} bytes, but {file.size} were written"
            )
        noted = file.checksum.encode("utf-8", "replace")
        if not hmac.compare_digest(noted, file_checksum(data, self.key).encode("ascii")):
            raise CorruptCheckpointError(
                self.full_name(file.name),
                "was altered: its checksum does not match",
            )
        return data

    def full_name(self, name: str) -> str:
        """A file as a message names it."""
        return f"{self.url}/{name}"


def checkpoint_storage(url: str, key: CheckpointKey | None = None) -> CheckpointStorage:
    """The storage at a path or URL.

    Args:
        url: The place.
        key: Signs what is written and authenticates what is read; None if checkpoints are not signed.

    Raises:
        CheckpointError: fsspec is needed and not installed, or knows no such kind of URL.
    """
    from opchain.runtime.checkpoint.local_storage import LocalStorage  # noqa: PLC0415 - it imports this module

    parts = urlsplit(url)
    if parts.scheme in ("", "file"):
        return LocalStorage(parts.path if parts.scheme else url, key)
    from opchain.runtime.checkpoint.remote_storage import RemoteStorage  # noqa: PLC0415 - as above

    return RemoteStorage(url, key)


def require_safe_name(name: str, url: str) -> None:
    """Makes sure that a name leads to a place below a URL.

    Raises:
        CorruptCheckpointError: It is absolute, or has an empty part, `.`, `..`, a backslash or a NUL.
    """
    if any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name or "\0" in name:
        raise CorruptCheckpointError(
            repr(name),
            f"is refused: the name does not lead to a file below {url}. A file of the checkpoint holds this "
            "name, so the checkpoint is damaged or was made to write elsewhere: do not use it",
        )


def file_checksum(data: bytes, key: CheckpointKey | None) -> str:
    """What metadata notes of a file's content: a checksum, or with a key a signature."""
    return checksum(data) if key is None else key.signature(data, "file")


def checksum(data: bytes) -> str:
    """The checksum of a file's content: 128 bits of BLAKE2b, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
