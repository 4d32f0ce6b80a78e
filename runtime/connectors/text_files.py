"""Lines of text files, read in large blocks by several subtasks."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
import re
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.connectors.local_path import local_path
from opchain.runtime.connectors.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BLOCK_SIZE = 1 << 20
"""Bytes read at once: enough to hide the call, small enough to stay in the cache."""

_SEARCH_SIZE = 1 << 16
_LINE_END = re.compile(rb"\r\n|\n|\r")
_HIDDEN = (".", "_")
_MAGIC = frozenset("*?[")
_DECOMPRESSED: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".gzip": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


class FileRange(NamedTuple):
    """Bytes `start` to `stop` of a file; `stop` None means all of a file that can't be cut."""

    path: str
    start: int
    stop: int | None


class TextLineSource(Source[str]):
    r"""The lines of text files, without their ends (\n, \r\n or \r).

    The bytes of all files, in the order of their sorted paths, are dealt out in contiguous parts, one
    for each subtask; a line belongs to the part in which it starts. So the subtasks' lines, one
    subtask after the other, are the lines of the files in order. Compressed files (.gz, .bz2, .xz)
    and character sets in which a line end is not one byte can't be cut: one subtask reads all of it.

    Flink: a FileSource with TextLineInputFormat, which does not cut text files at all. As there,
    files whose name starts with "." or "_" are left out of folders, and bytes that are no text become
    U+FFFD. Patterns such as `logs/*.txt` are ours.

    Args:
        *paths: Files, folders (with all that is below them), or patterns.
        charset_name: How the bytes are read as text.
    """

    def __init__(self, *paths: str | os.PathLike[str], charset_name: str = "UTF-8") -> None:
        if not paths:
            raise ValueError("a text file source needs at least one path")
        self.paths = tuple(local_path(path) for path in paths)
        self.charset_name = charset_name
        try:
            self._can_be_cut = "\r\n".encode(charset_name) == b"\r\n"
        except LookupError as error:
            raise ValueError(f"{charset_name!r} is no character set that Python knows") from error

    def __repr__(self) -> str:
        return f"TextLineSource({', '.join(map(repr, self.paths))})"

    def files(self) -> list[str]:
        """The files that the paths stand for now.

        Raises:
            FileNotFoundError: A path does not exist, or nothing matches a pattern.
        """
        return [file for path in self.paths for file in _files_at(path)]

    def splits(self, parallelism: int) -> list[list[FileRange]]:
        """The bytes of each subtask."""
        files = self.files()
        sizes = [os.path.getsize(file) for file in files]  # noqa: PTH202 - one call per file
        borders = [number * sum(sizes) // parallelism for number in range(parallelism + 1)]
        parts: list[list[FileRange]] = [[] for _ in range(parallelism)]
        begin = 0
        for file, size in zip(files, sizes):  # noqa: B905 - made from one another
            for number, part in enumerate(parts):
                start, stop = max(borders[number], begin), min(borders[number + 1], begin + size)
                if start >= stop:
                    continue
                if self._is_cut(file):
                    part.append(FileRange(file, start - begin, stop - begin))
                elif start == begin:
                    part.append(FileRange(file, 0, None))
            begin += size
        return parts

    def read(self, split: FileRange, batch_size: int) -> Iterator[Sequence[str]]:
        """The lines that start in the range, read block by block."""
        for text in self._texts(split):
            lines = text.removesuffix("\n").split("\n")
            for first in range(0, len(lines), batch_size):
                yield lines[first : first + batch_size]

    def read_blocks(self, split: FileRange) -> Iterator[bytes]:
        """The lines that start in the range, as blocks of whole lines: for parsers of bytes.

        Line ends are as in the file. The character set must be one in which files can be cut.
        """
        if split.stop is None:
            for text in self._texts_of_whole_file(split.path):
                yield text.encode(self.charset_name)
            return
        with open(split.path, "rb") as file:  # noqa: PTH123 - a str path, once per split
            start, stop = _line_start(file, split.start), _line_start(file, split.stop)
            yield from _line_blocks(file, start, stop)

    def _is_cut(self, file: str) -> bool:
        return self._can_be_cut and _suffix(file) not in _DECOMPRESSED

    def _texts(self, split: FileRange) -> Iterator[str]:
        """Blocks of whole lines, ended by a line feed each, but maybe for the file's last."""
        if split.stop is None:
            yield from self._texts_of_whole_file(split.path)
            return
        for block in self.read_blocks(split):
            text = block.decode(self.charset_name, "replace")
            # Looked for first: text with Unix line ends, the usual kind, is not copied.
            if "\r" in text:
                text = text.replace("\r\n", "\n").replace("\r", "\n")
            yield text

    def _texts_of_whole_file(self, path: str) -> Iterator[str]:
        decompressed = _DECOMPRESSED.get(_suffix(path), open)
        with decompressed(
            path, "rt", encoding=self.charset_name, errors="replace", newline=None
        ) as file:
            pending: list[str] = []
            while text := file.read(BLOCK_SIZE):
                border = text.rfind("\n") + 1
                if border:
                    yield "".join((*pending, text[:border]))
                    pending = []
                pending.append(text[border:])
            if rest := "".join(pending):
                yield rest


def _line_start(file: IO[bytes], position: int) -> int:
    """The first position from here on at which a line starts; the file's size if none does."""
    if position == 0:
        return 0
    # A line starts behind a line end, so the search begins one byte before.
    offset = position - 1
    file.seek(offset)
    while block := file.read(_SEARCH_SIZE):
        found = _LINE_END.search(block)
        if found is None:
            offset += len(block)
            continue
        end = offset + found.end()
        # \r at the end of the block may be the first half of \r\n.
        if found.end() == len(block) and block.endswith(b"\r") and file.read(1) == b"\n":
            end += 1
        return end
    return offset


def _line_blocks(file: IO[bytes], start: int, stop: int) -> Iterator[bytes]:
    """The bytes from one line start to another, in blocks of whole lines."""
    file.seek(start)
    pending: list[bytes] = []
    left = stop - start
    while left > 0 and (block := file.read(min(BLOCK_SIZE, left))):
        left -= len(block)
        # A block may end between \r and \n, so a lone \r counts only before the last byte.
        border = block.rfind(b"\n") + 1 or block.rfind(b"\r", 0, len(block) - 1) + 1
        if border:
            yield b"".join((*pending, block[:border]))
            pending = []
        pending.append(block[border:])
    if rest := b"".join(pending):
        yield rest


def _files_at(path: str) -> list[str]:
    if os.path.isfile(path):  # noqa: PTH113 - str paths throughout: they travel to executors
        return [path]
    if os.path.isdir(path):  # noqa: PTH112
        return _files_below(path)
    if not _MAGIC.isdisjoint(path):
        matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - of any absolute pattern
        if matches:
            return [file for match in matches for file in _files_at(match)]
        raise FileNotFoundError(f"no file matches the pattern '{path}'")
    raise FileNotFoundError(f"there is no file or folder '{path}'")


def _files_below(folder: str) -> list[str]:
    found: list[str] = []
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        if name.startswith(_HIDDEN):
            continue
        path = os.path.join(folder, name)  # noqa: PTH118
        found.extend(_files_below(path) if os.path.isdir(path) else [path])  # noqa: PTH112
    return found


def _suffix(file: str) -> str:
    return os.path.splitext(file)[1].lower()  # noqa: PTH122
