"""File systems: local disks and, through fsspec, object stores, HDFS, SFTP and others.

Credentials and options are set in fsspec's own configuration: its `conf` folder, or variables such as FSSPEC_S3_KEY.
The executors need the same configuration.
"""

from __future__ import annotations

import glob
import io
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from opchain.runtime.errors import MissingLibraryError, imported

SCHEME_END = "://"


class FileStatus(NamedTuple):
    """A file and its size in bytes."""

    path: str
    size: int


class FolderContent(NamedTuple):
    """The files and subfolders of a folder, both sorted by path."""

    files: list[FileStatus]
    folders: list[str]


class FileSystem(ABC):
    """The file system operations of sources and sinks. Flink: FileSystem.

    Paths are absolute: results of `qualified_path`.
    """

    @abstractmethod
    def status(self, path: str) -> FileStatus | None:
        """The file at a path. None if there is no file, or if it is a folder."""

    @abstractmethod
    def content(self, folder: str) -> FolderContent | None:
        """The current content of a folder. None if the folder does not exist."""

    @abstractmethod
    def matches(self, pattern: str) -> list[str]:
        """The files and folders that match a pattern with *, ?, [..] and **, sorted."""

    @abstractmethod
    def open_input(self, path: str) -> BinaryIO:
        """Opens a file for reading. The file supports seek."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """Creates a file for writing. A missing folder is created too."""

    @abstractmethod
    def make_folder(self, path: str) -> None:
        """Creates a folder and its parents, if they do not exist."""

    @abstractmethod
    def complete(self, stream: BinaryIO) -> None:
        """Closes a file of `create`. Afterwards, its contents survive a crash."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Removes a file."""

    @abstractmethod
    def move(self, path: str, target: str) -> None:
        """Renames a complete file.

        The folder of the new name must exist, and no other file may ever have had that name.

        On disks, HDFS and object stores, readers never see a partial file under the new name. After an interruption,
        call it again to complete the move.

        Raises:
            FileNotFoundError: The file does not exist.
        """

    @abstractmethod
    def touch(self, path: str) -> None:
        """Creates an empty file, if it does not exist."""

    def sync_folder(self, folder: str) -> None:
        """Makes the names in a folder survive a crash of the machine, if the file system requires this."""

    def remove_empty_folder(self, path: str) -> None:
        """Removes an empty folder, if the file system has folders."""


def qualified_path(path: str | os.PathLike[str]) -> str:
    """Makes a local path absolute, because executors may have another working directory. A URL is returned unchanged.

    Raises:
        TypeError: The argument is not a path.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"the path {text!r} is bytes; it must be a str or a Path")
    if urlsplit(text).scheme == "file":
        text = unquote(urlsplit(text).path)
    elif SCHEME_END in text:
        return text
    return os.path.abspath(text)  # noqa: PTH100 - str paths throughout: they are sent to executors


def dataset_of(path: str) -> tuple[str, str]:
    """OpenLineage's namespace and name of a path.

    >>> dataset_of("/data/in"), dataset_of("s3://bucket/in/a.csv")
    (('file', '/data/in'), ('s3://bucket', 'in/a.csv'))
    """
    if SCHEME_END not in path:
        return "file", path
    parts = urlsplit(path)
    return f"{parts.scheme}{SCHEME_END}{parts.hostname or ''}", parts.path.lstrip("/") or "/"


def file_system_of(path: str) -> FileSystem:
    """The file system of a qualified path.

    Raises:
        MissingLibraryError: The path is a URL, and fsspec or the library for this kind of URL is not installed.
    """
    return fsspec_file_system(path) if SCHEME_END in path else LocalFileSystem()


def joined(folder: str, *names: str) -> str:
    """Joins path parts, for local paths and URLs."""
    return "/".join((folder.rstrip("/"), *names))


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


_BUFFER_SIZE = 1 << 20
_ATTEMPTS = 5


class LocalFileSystem(FileSystem):
    """The local file system. Paths are plain."""

    def status(self, path: str) -> FileStatus | None:
        """The file at a path."""
        is_file = os.path.isfile(path)  # noqa: PTH113 - str paths throughout: they are sent
        return FileStatus(path, os.path.getsize(path)) if is_file else None  # noqa: PTH202

    def content(self, folder: str) -> FolderContent | None:
        """The content of a folder."""
        if not os.path.isdir(folder):  # noqa: PTH112
            return None
        files: list[FileStatus] = []
        folders: list[str] = []
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    # The file was removed since it was listed: a commit renames hidden files. Or it is a dangling
                    # link, such as the lock of an editor.
                    with suppress(FileNotFoundError):
                        files.append(FileStatus(entry.path, entry.stat().st_size))
        return FolderContent(files, folders)

    def matches(self, pattern: str) -> list[str]:
        """The files and folders that a pattern matches."""
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - of any absolute pattern

    def open_input(self, path: str) -> BinaryIO:
        """A file for reading."""
        return open(path, "rb")  # noqa: PTH123 - the caller closes it

    def create(self, path: str) -> BinaryIO:
        """Creates a file. Raises FileExistsError if it exists."""
        folder = os.path.dirname(path)  # noqa: PTH120
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self.make_folder(folder)
            except FileNotFoundError:
                if attempt == _ATTEMPTS:
                    raise  # such as /proc/out, which can't be made
                continue
            # A job that ends may remove an empty folder at the same time.
            with suppress(FileNotFoundError):
                return io.BufferedWriter(_NamedFile(path, "xb"), _BUFFER_SIZE)
        raise FileNotFoundError(
            f"{path} can't be created: its folder was removed {_ATTEMPTS} times"
        )

    def make_folder(self, path: str) -> None:
        """Creates a folder."""
        os.makedirs(path, exist_ok=True)  # noqa: PTH103

    def complete(self, stream: BinaryIO) -> None:
        """Syncs and closes the file."""
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()

    def delete(self, path: str) -> None:
        """Removes a file."""
        os.unlink(path)  # noqa: PTH108

    def move(self, path: str, target: str) -> None:
        """Renames the file."""
        os.rename(path, target)  # noqa: PTH104 - str paths throughout

    def touch(self, path: str) -> None:
        """Creates an empty file."""
        with suppress(FileExistsError), self.create(path) as stream:
            self.complete(stream)

    def sync_folder(self, folder: str) -> None:
        """Syncs the folder."""
        sync_local_folder(folder)

    def remove_empty_folder(self, path: str) -> None:
        """Removes the folder."""
        with suppress(OSError):  # the folder is not empty, or another job has removed it
            os.rmdir(path)  # noqa: PTH106


def sync_local_folder(folder: str | os.PathLike[str]) -> None:
    """Syncs the names in a local folder to disk, if the system supports that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _NamedFile(io.FileIO):
    """A file that adds its name to errors, such as those of a full disk. Python's errors have no file name."""

    def write(self, data: Any, /) -> int:
        """Writes bytes."""
        try:
            return super().write(data) or 0
        except OSError as error:
            error.filename = error.filename or self.name
            raise


_FOLDER = ".folder"


def fsspec_file_system(url: str) -> FsspecFileSystem:
    """The file system of a URL.

    Raises:
        MissingLibraryError: fsspec or the library for this kind of URL is not installed.
        ValueError: fsspec does not know this kind of URL.
    """
    fsspec = imported("fsspec", "files", f"the path '{url}'")
    try:
        file_system, _ = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise MissingLibraryError(f"the path '{url}' cannot be reached: {error}") from error
    except ValueError as error:
        raise ValueError(
            f"the path '{url}' has a scheme that fsspec does not know ({error})"
        ) from error
    return FsspecFileSystem(file_system)


class FsspecFileSystem(FileSystem):
    """A file system of fsspec. Paths are URLs."""

    def __init__(self, file_system: Any) -> None:
        self._fs = file_system

    def status(self, path: str) -> FileStatus | None:
        """The file at a URL."""
        self._fs.invalidate_cache()
        if not self._fs.isfile(path):
            return None
        return FileStatus(path, self._fs.size(path))

    def content(self, folder: str) -> FolderContent | None:
        """The content of a folder, without fsspec's cache."""
        self._fs.invalidate_cache()
        if not self._fs.isdir(folder):
            return None
        own = self._url(self._fs._strip_protocol(folder))  # noqa: SLF001 - fsspec's way to compare
        files: list[FileStatus] = []
        folders: list[str] = []
        for entry in sorted(self._fs.ls(folder, detail=True), key=lambda entry: entry["name"]):
            url = self._url(entry["name"])
            if entry["type"] == "directory":
                folders.append(url)
            elif url != own:  # object stores may have an empty object for a folder
                files.append(FileStatus(url, entry["size"]))
        return FolderContent(files, folders)

    def matches(self, pattern: str) -> list[str]:
        """The files and folders that a pattern matches."""
        self._fs.invalidate_cache()
        return sorted(map(self._url, self._fs.glob(pattern)))

    def open_input(self, path: str) -> BinaryIO:
        """A file for reading."""
        return cast("BinaryIO", self._fs.open(path, "rb"))

    def create(self, path: str) -> BinaryIO:
        """Creates a file. The name must be unique: an older file is replaced."""
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        return cast("BinaryIO", self._fs.open(path, "wb"))

    def make_folder(self, path: str) -> None:
        """Creates a folder. If the file system has no folders, creates an empty hidden file."""
        self._fs.makedirs(path, exist_ok=True)
        self._fs.invalidate_cache()
        if not self._fs.isdir(path):
            self._fs.pipe_file(f"{path.rstrip('/')}/{_FOLDER}", b"")

    def complete(self, stream: BinaryIO) -> None:
        """Closes the file, which completes an upload."""
        stream.close()

    def delete(self, path: str) -> None:
        """Removes a file."""
        self._fs.rm_file(path)

    def move(self, path: str, target: str) -> None:
        """Moves the file. An object store copies the file and then removes the original."""
        self._fs.mv(path, target)

    def touch(self, path: str) -> None:
        """Creates an empty file."""
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(path, b"")

    def _url(self, name: str) -> str:
        url: str = self._fs.unstrip_protocol(name)
        return url
