"""Bytes of a file in blocks of whole lines, from any range; and files that are compressed, by the ends of their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from opchain.runtime.errors import imported
from opchain.runtime.files.file_systems import file_system_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.files.file_range import FileRange

_CHUNK_SIZE = 1 << 16


def is_compressed(path: str) -> bool:
    """Whether the file must be unpacked: such a file can't be cut."""
    return _suffix(path) in _DECOMPRESSED


def decompressed(file: BinaryIO, path: str) -> BinaryIO:
    """What is in a file: itself, or its unpacked bytes. Closing it leaves `file` open.

    Flink: `StandardDeCompressors`.

    Raises:
        MissingLibraryError: It is a .zst file, and zstandard is not installed.
    """
    unpack = _DECOMPRESSED.get(_suffix(path))
    return file if unpack is None else cast("BinaryIO", unpack(file))


class _Inflated(io.RawIOBase):
    """The bytes of a zlib stream."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._inflate = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            chunk = self._inflate.unconsumed_tail or self._file.read(_CHUNK_SIZE)
            data = self._inflate.decompress(chunk, len(buffer)) if chunk else self._inflate.flush()
            if data or not chunk:
                if not chunk and not self._inflate.eof:
                    raise EOFError("the compressed file is truncated")
                buffer[: len(data)] = data
                return len(data)


def _inflated(file: BinaryIO) -> BinaryIO:
    return io.BufferedReader(_Inflated(file))


def _unzstd(file: BinaryIO) -> Any:
    zstandard = imported("zstandard", "files", "reading a .zst file")
    reader = zstandard.ZstdDecompressor().stream_reader(
        file, read_across_frames=True, closefd=False
    )
    return io.BufferedReader(reader)


_DECOMPRESSED: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".gzip": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".deflate": _inflated,
    ".zst": _unzstd,
    ".zstd": _unzstd,
}


def _suffix(path: str) -> str:
    dot = path.rfind(".")
    return path[dot:].lower() if dot > path.rfind("/") else ""


BLOCK_SIZE = 1 << 20
"""Bytes read at once: enough to hide the call, small enough to stay in the cache."""

_SEARCH_SIZE = 1 << 16
_LINE_END = re.compile(rb"\r\n|\n|\r")


class LineBlock(NamedTuple):
    """Whole lines with their ends, and the position of the first one (in the unpacked file)."""

    offset: int
    data: bytes


def line_blocks(part: FileRange) -> Iterator[LineBlock]:
    r"""The lines (ended by \n, \r\n or \r) that start in a range; compressed files are unpacked."""
    with file_system_of(part.path).open_input(part.path) as file:
        if part.stop is None:
            with decompressed(file, part.path) as unpacked:
                yield from _blocks(unpacked, 0, None)
        else:
            start, stop = _line_start(file, part.start), _line_start(file, part.stop)
            file.seek(start)
            yield from _blocks(file, start, stop)


def line_offset(block: LineBlock, index: int) -> int:
    """The position of a block's line in the file."""
    position = 0
    for _ in range(index):
        end = _LINE_END.search(block.data, position)
        if end is None:
            break
        position = end.end()
    return block.offset + position


def _line_start(file: BinaryIO, position: int) -> int:
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


def _blocks(file: BinaryIO, start: int, stop: int | None) -> Iterator[LineBlock]:
    """What follows, up to `stop` (a line's start), in blocks of whole lines."""
    offset = position = start
    pending: list[bytes] = []
    while stop is None or position < stop:
        block = file.read(BLOCK_SIZE if stop is None else min(BLOCK_SIZE, stop - position))
        if not block:
            break
        position += len(block)
        # A block may end between \r and \n, so a lone \r counts only before the last byte.
        border = block.rfind(b"\n") + 1 or block.rfind(b"\r", 0, len(block) - 1) + 1
        if border:
            whole = memoryview(block)[:border]  # copied once, by the join
            yield LineBlock(offset, b"".join((*pending, whole)))
            offset = position - len(block) + border
            pending = []
        pending.append(block[border:])
    if rest := b"".join(pending):
        yield LineBlock(offset, rest)
