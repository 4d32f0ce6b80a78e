"""Where files lie: on the machine's own disks, or wherever fsspec reaches."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, BinaryIO, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEME_END = "://"


class FileStatus(NamedTuple):
    """A file and its size in bytes."""

    path: str
    size: int


class FolderContent(NamedTuple):
    """What lies directly in a folder; both sorted by path."""

    files: list[FileStatus]
    folders: list[str]


class FileSystem(ABC):
    """What sources and sinks need of a place for files. Flink: FileSystem.

    Paths are absolute: those that `qualified_path` gives.
    """

    @abstractmethod
    def status(self, path: str) -> FileStatus | None:
        """The file at a path; None where there is none, or a folder."""

    @abstractmethod
    def content(self, folder: str) -> FolderContent | None:
        """What lies in a folder, as of now; None where there is no such folder."""

    @abstractmethod
    def matches(self, pattern: str) -> list[str]:
        """The files and folders that a pattern of *, ?, [..] and ** matches, sorted."""

    @abstractmethod
    def open_input(self, path: str) -> BinaryIO:
        """A file for reading, which can seek."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """A new file for writing, in a folder that is made where it is missing."""

    @abstractmethod
    def make_folder(self, path: str) -> None:
        """Makes a folder, and those above it, unless it is there."""

    @abstractmethod
    def complete(self, stream: BinaryIO) -> None:
        """Closes what `create` gave; then all of it outlives a crash."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Removes a file."""

    @abstractmethod
    def publish(self, hidden: str, names: Iterable[str]) -> None:
        """Gives a complete file the first of the names (paths) that is free.

        No reader sees half a file under its new name. Called again, also after an interruption, it
        ends with the file under one of the names, once.
        """


def qualified_path(path: str | os.PathLike[str]) -> str:
    """An absolute path, since executors may work in another folder, or a URL as it is.

    Raises:
        TypeError: It is no path.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"the path {text!r} is bytes; it must be a str or a Path")
    if urlsplit(text).scheme == "file":
        text = unquote(urlsplit(text).path)
    elif SCHEME_END in text:
        return text
    return os.path.abspath(text)  # noqa: PTH100 - str paths throughout: they travel to executors


def file_system_of(path: str) -> FileSystem:
    """The file system of a qualified path.

    Raises:
        MissingLibraryError: The path is a URL, and fsspec (or what it needs for it) is not installed.
    """
    if SCHEME_END in path:
        from opchain.runtime.connectors.files.fsspec_file_system import (  # noqa: PLC0415 - as needed
            fsspec_file_system,
        )

        return fsspec_file_system(path)
    from opchain.runtime.connectors.files.local_file_system import (  # noqa: PLC0415 - likewise
        LocalFileSystem,
    )

    return LocalFileSystem()


def joined(folder: str, *names: str) -> str:
    """A path below a folder; the same for local paths and URLs."""
    return "/".join((folder.rstrip("/"), *names))


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rpartition("/")[2]
