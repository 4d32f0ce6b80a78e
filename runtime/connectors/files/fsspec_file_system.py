"""Files of other machines: object stores, HDFS, SFTP and whatever else fsspec reaches.

Credentials and options come from fsspec's own configuration (its `conf` folder, or variables such as
FSSPEC_S3_KEY), which executors must have too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, cast

from opchain.runtime.connectors.files.file_system import FileStatus, FileSystem, FolderContent
from opchain.runtime.missing_library import MissingLibraryError, imported

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOTE_END = b"\n"
_FOLDER = ".folder"


def fsspec_file_system(url: str) -> FsspecFileSystem:
    """The file system of a URL.

    Raises:
        MissingLibraryError: fsspec is not installed, or not what it needs for this kind of URL.
        ValueError: fsspec knows no such kind of URL.
    """
    fsspec = imported("fsspec", "files", f"the path '{url}'")
    try:
        file_system, _ = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise MissingLibraryError(f"the path '{url}' cannot be reached: {error}") from error
    except ValueError as error:
        raise ValueError(f"the path '{url}' is of no kind that fsspec knows ({error})") from error
    return FsspecFileSystem(file_system)


class FsspecFileSystem(FileSystem):
    """A file system of fsspec; paths are URLs."""

    def __init__(self, file_system: Any) -> None:
        self._fs = file_system

    def status(self, path: str) -> FileStatus | None:
        """The file at a URL."""
        self._fs.invalidate_cache()
        if not self._fs.isfile(path):
            return None
        return FileStatus(path, self._fs.size(path))

    def content(self, folder: str) -> FolderContent | None:
        """What lies in a folder, without what an earlier look has found."""
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
            elif url != own:  # object stores may keep an empty object in place of a folder
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
        """A new file. Its name must be one that nobody else takes: an older file is replaced."""
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        return cast("BinaryIO", self._fs.open(path, "wb"))

    def make_folder(self, path: str) -> None:
        """Makes a folder; where there are only files, an empty one whose name hides it."""
        self._fs.makedirs(path, exist_ok=True)
        self._fs.invalidate_cache()
        if not self._fs.isdir(path):
            self._fs.pipe_file(f"{path.rstrip('/')}/{_FOLDER}", b"")

    def complete(self, stream: BinaryIO) -> None:
        """Closes: an upload is over then."""
        stream.close()

    def delete(self, path: str) -> None:
        """Removes a file."""
        self._fs.rm_file(path)

    def publish(self, hidden: str, names: Iterable[str]) -> None:
        """Moves the file, having noted where to.

        There is no link that fails where a name is taken, and a move may be a copy: interrupted, it
        leaves two files, of which the next attempt could not tell whose the named one is. So the name
        is noted beside the hidden file first, and the next attempt moves to the same one.
        """
        note = f"{hidden}.name"
        self._fs.invalidate_cache()
        if self._fs.exists(hidden):
            name = self._noted(note)
            if name is None:
                name = next(name for name in names if not self._fs.exists(name))
                self._fs.pipe_file(note, name.encode() + _NOTE_END)
            self._fs.mv(hidden, name)
        if self._fs.exists(note):
            self._fs.rm_file(note)

    def _noted(self, note: str) -> str | None:
        """The name that an interrupted attempt has chosen; a note without end was interrupted itself."""
        if not self._fs.exists(note):
            return None
        text: bytes = self._fs.cat_file(note)
        return text.removesuffix(_NOTE_END).decode() if text.endswith(_NOTE_END) else None

    def _url(self, name: str) -> str:
        url: str = self._fs.unstrip_protocol(name)
        return url
