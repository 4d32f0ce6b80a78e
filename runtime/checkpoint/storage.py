"""The storage of checkpoint files: a directory, an object store or HDFS, behind five operations.

A file is written once and never changed. `put` writes a file under a name that only the caller uses. `publish`
decides which of several writers was first: it fails if the name exists. Neither leaves a half-written file under
the name, wherever the process dies.

- A local path or a `file://` URL needs only the standard library. `put` writes a temporary file in the same folder,
  syncs it and renames it. `publish` creates a hard link instead, which fails if the name exists.
- Any other URL goes through fsspec. Object stores create an object in one step, and on the condition that the name
  is free (`mode="create"` in fsspec). HDFS has no such condition, but its rename fails if the name exists. A file
  system with neither cannot decide which of two drivers was first, and is refused.

s3fs, gcsfs and adlfs have the condition since their releases of late 2024. The tests use fsspec's memory file system.

Flink: `CheckpointStorageCoordinatorView`, `FsCheckpointStreamFactory`, `FsCheckpointMetadataOutputStream`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import inspect
import os
import secrets
import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from opchain.runtime.errors import CheckpointError, CorruptCheckpointError
from opchain.runtime.files.file_systems import sync_local_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.checkpoint.checkpoint_key import CheckpointKey


TEMPORARY = ".tmp"
"""The suffix of files that are being written. `names` leaves them out."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A reference to a file: its name in the storage, its size in bytes, and its checksum."""

    name: str
    size: int
    checksum: str


class CheckpointStorage(ABC):
    """A checkpoint directory. `checkpoint_storage` creates it. It is picklable, because tasks use it, too.

    Names are relative to `url`, with slashes. A name that leads out of `url` (absolute, with `..`, or over a symbolic
    link) raises CorruptCheckpointError in each of these calls. Names come from files of the checkpoint, which may be
    forged.

    Attributes:
        url: The path or URL of the directory.
        key: Signs metadata and files; None if checkpoints are not signed.
    """

    url: str
    key: CheckpointKey | None = None

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Creates or replaces a file, in one step."""

    @abstractmethod
    def publish(self, name: str, data: bytes) -> None:
        """Creates a file in one step, and fails if the name exists.

        Raises:
            FileExistsError: The name exists.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: The file does not exist.
        """

    @abstractmethod
    def names(self, prefix: str = "") -> list[str]:
        """The names of all files in a folder and below it, sorted; `prefix` is the folder."""

    @abstractmethod
    def children(self, folder: str = "") -> list[str]:
        """The names, without their folder, of the files and folders in a folder, sorted."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Removes a file, if it exists."""

    def delete_folder(self, name: str) -> None:
        """Removes a folder and everything in it, including unfinished files of its writers; or one file."""
        for file in [name, *self.names(name)]:
            self.delete(file)

    def put(self, name: str, data: bytes) -> StoredFile:
        """Creates a file in one step, and returns the StoredFile that `get` checks it by."""
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
        """The name of a file in messages."""
        return f"{self.url}/{name}"

    def require_folder(self) -> None:
        """Checks that the directory exists. Object stores have no directories.

        Raises:
            CheckpointError: It does not exist. The message has the most similar name beside it.
        """


def checkpoint_storage(url: str, key: CheckpointKey | None = None) -> CheckpointStorage:
    """The storage at a path or URL.

    Args:
        url: The path or URL.
        key: Signs written files and authenticates read files; None if checkpoints are not signed.

    Raises:
        CheckpointError: fsspec is needed and not installed, or does not support the URL.
    """
    parts = urlsplit(url)
    if parts.scheme in ("", "file"):
        return LocalStorage(parts.path if parts.scheme else url, key)

    return RemoteStorage(url, key)


def require_safe_name(name: str, url: str) -> None:
    """Checks that a name is below a URL.

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
    """The checksum of a file in the metadata, or with a key its signature."""
    return checksum(data) if key is None else key.signature(data, "file")


def checksum(data: bytes) -> str:
    """The checksum of a file's content: 128 bits of BLAKE2b, in hexadecimal."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
"""The errors of file systems without hard links."""


class LocalStorage(CheckpointStorage):
    """A local or mounted directory. The first write creates it.

    Only the user who runs the job can read its files and folders, because state contains records.
    """

    def __init__(self, path: str, key: CheckpointKey | None = None) -> None:
        self._root = Path(path).absolute()
        self.url = str(self._root)
        self.key = key

    def write(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        temporary = self._written(path, data)
        try:
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_local_folder(path.parent)

    def publish(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        temporary = self._written(path, data)
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise CheckpointError(
                f"{path} can't be published: the file system has no hard links "
                f"({error.strerror}); keep checkpoints on another file system"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)
        sync_local_folder(path.parent)

    def read(self, name: str) -> bytes:
        """See CheckpointStorage."""
        path = self._path(name)
        self._require_inside(path)
        return path.read_bytes()

    def require_folder(self) -> None:
        """See CheckpointStorage."""
        root = self._root
        if root.exists():
            return
        beside = [path.name for path in root.parent.glob("*") if path.is_dir()]
        nearest = get_close_matches(root.name, sorted(beside), n=1, cutoff=0.7)
        hint = f"; did you mean {root.parent / nearest[0]}?" if nearest else ""
        raise CheckpointError(f"there is no folder {root}{hint}")

    def names(self, prefix: str = "") -> list[str]:
        """See CheckpointStorage."""
        root = self._root
        return sorted(
            path.relative_to(root).as_posix()
            for path in (self._path(prefix) if prefix else root).rglob("*")
            if path.suffix != TEMPORARY and path.is_file()
        )

    def children(self, folder: str = "") -> list[str]:
        """See CheckpointStorage."""
        try:
            found = list((self._path(folder) if folder else self._root).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(path.name for path in found if path.suffix != TEMPORARY)

    def delete(self, name: str) -> None:
        """See CheckpointStorage. Also removes empty parent folders."""
        path = self._path(name)
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is not empty, or gone already
            for folder in path.parents:
                if folder == self._root:
                    break
                folder.rmdir()

    def delete_folder(self, name: str) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            self.delete(name)

    def _written(self, path: Path, data: bytes) -> Path:
        """Writes a temporary file beside a path, and syncs it."""
        try:
            self._root.parent.mkdir(parents=True, exist_ok=True)
            self._root.mkdir(0o700, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            # Not to be mistaken for a name that another writer has published.
            raise CheckpointError(
                f"{path.parent} can't be created: {error.filename} is not a directory; remove that file, "
                "or choose another directory"
            ) from error
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
        try:
            with open(temporary, "xb", opener=_private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if (
                isinstance(error, OSError) and error.filename is None
            ):  # for example, if the disk is full
                error.filename = str(path)
            raise
        return temporary

    def _path(self, name: str) -> Path:
        """The path of a file. Its folder is below the root, even after resolving links."""
        require_safe_name(name, self.url)
        path = self._root / name
        self._require_inside(path.parent)
        return path

    def _require_inside(self, path: Path) -> None:
        root, real = os.path.realpath(self._root), os.path.realpath(path)
        if real != root and not real.startswith(f"{root.rstrip(os.sep)}{os.sep}"):
            raise CorruptCheckpointError(
                str(path),
                f"is refused: a symbolic link leads from it to {real}, which is outside of {self.url}; keep the "
                "files of checkpoints in their directory itself",
            )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


_RENAME_FAILS_IF_EXISTS = frozenset({"hdfs", "viewfs", "arrow_hdfs"})


@contextlib.contextmanager
def _raises_os_errors() -> Iterator[None]:
    """Raises an OSError in place of other errors of a file system.

    Libraries of object stores have errors of their own for a lost connection, such as EndpointConnectionError of botocore.
    """
    try:
        yield
    except (OSError, CheckpointError):
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


class RemoteStorage(CheckpointStorage):
    """A URL that fsspec supports.

    Raises:
        CheckpointError: fsspec, or its library for such URLs, is not installed.
    """

    def __init__(self, url: str, key: CheckpointKey | None = None) -> None:
        self.url = url.rstrip("/")
        self.key = key
        self._root: str
        _ = self._fs  # so that a wrong URL fails now

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStorage, (self.url, self.key)

    @_raises_os_errors()
    def write(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        if not self._renames:
            self._fs.pipe_file(path, data)
            return
        temporary = self._written_beside(path, data)
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(path)
        self._fs.mv(temporary, path)

    @_raises_os_errors()
    def publish(self, name: str, data: bytes) -> None:
        """See CheckpointStorage."""
        path = self._path(name)
        if self._renames:
            temporary = self._written_beside(path, data)
            try:
                self._fs.mv(temporary, path)
            except OSError:
                self._fs.rm_file(temporary)
                if self._fs.exists(path):
                    raise FileExistsError(path) from None
                raise
        elif _creates_on_condition(self._fs):
            try:
                self._fs.pipe_file(path, data, mode="create")
            except FileExistsError:
                # Libraries repeat a request whose answer was lost. The first request may have created the file.
                if self._fs.cat_file(path) != data:
                    raise
        else:
            raise CheckpointError(
                f"{self.url} can't keep checkpoints: {type(self._fs).__name__} of this fsspec "
                f"cannot create a file only if it does not exist; install a newer version, or "
                "keep checkpoints elsewhere"
            )

    @_raises_os_errors()
    def read(self, name: str) -> bytes:
        """See CheckpointStorage."""
        data: bytes = self._fs.cat_file(self._path(name))
        return data

    @_raises_os_errors()
    def names(self, prefix: str = "") -> list[str]:
        """See CheckpointStorage."""
        self._fs.invalidate_cache()
        folder = self._path(prefix).rstrip("/")
        found = self._fs.find(folder) if self._fs.exists(folder) else []
        return sorted(
            path[len(self._root) :].lstrip("/") for path in found if not path.endswith(TEMPORARY)
        )

    @_raises_os_errors()
    def children(self, folder: str = "") -> list[str]:
        """See CheckpointStorage."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(self._path(folder).rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        names = (path.rstrip("/").rpartition("/")[2] for path in found)
        return sorted(name for name in names if not name.endswith(TEMPORARY))

    @_raises_os_errors()
    def delete(self, name: str) -> None:
        """See CheckpointStorage."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    @_raises_os_errors()
    def delete_folder(self, name: str) -> None:
        """See CheckpointStorage."""
        self._fs.invalidate_cache()
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm(self._path(name), recursive=True)

    def _path(self, name: str) -> str:
        if name:
            require_safe_name(name, self.url)
        return f"{self._root}/{name}"

    def _written_beside(self, path: str, data: bytes) -> str:
        temporary = f"{path}.{secrets.token_hex(4)}{TEMPORARY}"
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(temporary, data)
        return temporary

    @property
    def _renames(self) -> bool:
        protocol = self._fs.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        return bool(protocols & _RENAME_FAILS_IF_EXISTS)

    @cached_property
    def _fs(self) -> Any:
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - local paths do not need it
        except ImportError:
            raise CheckpointError(
                f"{self.url} needs fsspec, which is not installed here: run pip install fsspec, "
                f"or use a local path"
            ) from None
        try:
            fs, root = url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise CheckpointError(f"{self.url} can't be opened: {error}") from error
        self._root = root.rstrip("/")
        return fs


def _creates_on_condition(fs: Any) -> bool:
    """Whether a file system itself can create a file only if it does not exist.

    fsspec's default implementation checks first and then writes, so two writers may both succeed.
    """
    from fsspec.asyn import AsyncFileSystem  # noqa: PLC0415 - local paths do not need it
    from fsspec.spec import AbstractFileSystem  # noqa: PLC0415

    general = {AbstractFileSystem.pipe_file, getattr(AsyncFileSystem, "_pipe_file", None)}
    methods = (getattr(type(fs), name, None) for name in ("_pipe_file", "pipe_file"))
    return any(
        method is not None
        and method not in general
        and "mode" in inspect.signature(method).parameters
        for method in methods
    )


class OverlayStorage(CheckpointStorage):
    """The files of another storage, with changes that only this process sees."""

    def __init__(self, below: CheckpointStorage) -> None:
        self.url = below.url
        self.key = below.key
        self._below = below
        self._written: dict[str, bytes] = {}
        self._deleted: set[str] = set()

    def write(self, name: str, data: bytes) -> None:
        """Writes a file to memory."""
        self._written[name] = data
        self._deleted.discard(name)

    def publish(self, name: str, data: bytes) -> None:
        """Writes a file to memory, if its name is free."""
        if name in self.names(name.rpartition("/")[0]):
            raise FileExistsError(self.full_name(name))
        self.write(name, data)

    def read(self, name: str) -> bytes:
        """The last content."""
        if name in self._deleted:
            raise FileNotFoundError(self.full_name(name))
        found = self._written.get(name)
        return self._below.read(name) if found is None else found

    def names(self, prefix: str = "") -> list[str]:
        """The names in both storages."""
        folder = f"{prefix}/" if prefix else ""
        return self._visible(
            self._below.names(prefix), (name for name in self._written if name.startswith(folder))
        )

    def children(self, folder: str = "") -> list[str]:
        """The names in both storages, including folders that are empty now."""
        start = f"{folder}/" if folder else ""
        own = {
            name.removeprefix(start).partition("/")[0]
            for name in self._written
            if name.startswith(start)
        }
        gone = {name.removeprefix(start) for name in self._deleted if name.startswith(start)}
        return sorted((set(self._below.children(folder)) - gone) | own)

    def delete(self, name: str) -> None:
        """Hides a file."""
        self._written.pop(name, None)
        self._deleted.add(name)

    def _visible(self, below: Iterable[str], own: Iterable[str]) -> list[str]:
        return sorted((set(below) - self._deleted) | set(own))
