"""Files on the machine's own disks."""

from __future__ import annotations

import glob
import os
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from opchain.runtime.connectors.files.file_system import FileStatus, FileSystem, FolderContent

if TYPE_CHECKING:
    from collections.abc import Iterable

_BUFFER_SIZE = 1 << 20


class LocalFileSystem(FileSystem):
    """The file system that the process sees; paths are plain."""

    def status(self, path: str) -> FileStatus | None:
        """The file at a path."""
        is_file = os.path.isfile(path)  # noqa: PTH113 - str paths throughout: they travel
        return FileStatus(path, os.path.getsize(path)) if is_file else None  # noqa: PTH202

    def content(self, folder: str) -> FolderContent | None:
        """What lies in a folder."""
        if not os.path.isdir(folder):  # noqa: PTH112
            return None
        files: list[FileStatus] = []
        folders: list[str] = []
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    # Gone since it was listed, as hidden names are when they are committed; or a link
                    # to nothing, as editors' locks are.
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
        """A new file; FileExistsError where there is one."""
        self.make_folder(os.path.dirname(path))  # noqa: PTH120
        return open(path, "xb", buffering=_BUFFER_SIZE)  # noqa: PTH123 - the caller closes it

    def make_folder(self, path: str) -> None:
        """Makes a folder."""
        os.makedirs(path, exist_ok=True)  # noqa: PTH103

    def complete(self, stream: BinaryIO) -> None:
        """Syncs and closes."""
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()

    def delete(self, path: str) -> None:
        """Removes a file."""
        os.unlink(path)  # noqa: PTH108

    def publish(self, hidden: str, names: Iterable[str]) -> None:
        """Links the file under its name, then removes the hidden name: either name shows all of it."""
        if not os.path.exists(hidden):  # noqa: PTH110
            return
        try:
            next(name for name in names if _named(hidden, name))
        except FileNotFoundError:
            if os.path.exists(hidden):  # noqa: PTH110
                raise
            # Else a driver that has replaced this one has named it meanwhile.


def _named(hidden: str, name: str) -> bool:
    """Gives a file its name; says False where another file has it."""
    try:
        # A link fails where the name is taken; a rename would replace the other file.
        os.link(hidden, name)
    except FileExistsError:
        if not os.path.samefile(hidden, name):  # noqa: PTH121 - the same: interrupted behind the link
            return False
    except OSError:  # a file system without links
        if os.path.lexists(name):
            return False
        os.rename(hidden, name)  # noqa: PTH104
        return True
    os.unlink(hidden)  # noqa: PTH108
    return True
