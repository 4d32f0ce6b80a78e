"""Reads a range of a file in blocks of whole lines, and decompresses files by their file name extension."""

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
    """Whether the file is compressed. Such a file cannot be split."""
    return _suffix(path) in _DECOMPRESSED


def decompressed(file: BinaryIO, path: str) -> BinaryIO:
    """The decompressed contents of a file, or the file itself. Closing the result does not close `file`.

    Flink: `StandardDeCompressors`.

    Raises:
        MissingLibraryError: It is a .zst file, and zstandard is not installed.
    """
    unpack = _DECOMPRESSED.get(_suffix(path))
    return file if unpack is None else cast("BinaryIO", unpack(file))


class _Inflated(io.RawIOBase):
    """The decompressed bytes of a zlib stream."""

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
    ".deflate": lambda file: io.BufferedReader(_Inflated(file)),
    ".zst": _unzstd,
    ".zstd": _unzstd,
}


def _suffix(path: str) -> str:
    dot = path.rfind(".")
    return path[dot:].lower() if dot > path.rfind("/") else ""


BLOCK_SIZE = 1 << 19
"""The number of bytes to read at once: large enough to make few calls, small enough for the processor's cache.

For blocks of 1 MB, glibc returns the memory of each block to the system, and gets it again with 100 page faults. Reading
a file in them took three times the CPU time of blocks of 512 KB.
"""

_SEARCH_SIZE = 1 << 12
_LINE_END = re.compile(rb"\r\n|\n|\r")


class LineBlock(NamedTuple):
    """Whole lines with their ends, and the position of the first line in the decompressed file."""

    offset: int
    data: bytes


def line_blocks(part: FileRange) -> Iterator[LineBlock]:
    r"""Yields the lines (ended by \n, \r\n or \r) that start in a range. Compressed files are decompressed."""
    with file_system_of(part.path).open_input(part.path) as file:
        if part.stop is None:
            with decompressed(file, part.path) as unpacked:
                yield from _blocks(unpacked, 0, None)
        else:
            start, stop = _line_start(file, part.start), _line_start(file, part.stop)
            if isinstance(file, io.BufferedReader):
                yield from _local_blocks(file, start, stop)
            else:
                file.seek(start)
                yield from _blocks(file, start, stop)


def line_offsets(block: LineBlock) -> list[int]:
    """The positions in the file of all lines of the block, and of its end."""
    ends = (found.end() for found in _LINE_END.finditer(block.data))
    return [block.offset, *(block.offset + end for end in ends)]


def _line_start(file: BinaryIO, position: int) -> int:
    """The first start of a line at this position or later. The size of the file if there is none."""
    if position == 0:
        return 0
    # A line starts after a line end, so the search begins one byte before the position.
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


def _local_blocks(file: io.BufferedReader, start: int, stop: int) -> Iterator[LineBlock]:
    """As `_blocks`, for a file of this machine, where reading some bytes again is cheap.

    The end of a block is found before the block is read. So the block is read into its own memory, and never copied.
    That takes 40 % of the CPU time of `_blocks`.
    """
    while start < stop:
        end = _line_start(file, min(start + BLOCK_SIZE, stop))
        file.seek(start)
        data = file.read(end - start)
        if not data:
            break
        yield LineBlock(start, data)
        start = end


def _blocks(file: Any, start: int, stop: int | None) -> Iterator[LineBlock]:
    """Yields the bytes from the start up to `stop` (the start of a line) in blocks of whole lines."""
    offset = position = start
    # All blocks are read into one buffer, and copied once. If each block were read into new memory, the system would
    # have to clear that memory first: a fifth of the CPU time of a program that only filters.
    buffer = bytearray()
    kept = 0
    while stop is None or position < stop:
        size = BLOCK_SIZE if stop is None else min(BLOCK_SIZE, stop - position)
        buffer += bytes(max(0, kept + size - len(buffer)))
        with memoryview(buffer) as view, view[kept : kept + size] as room:
            count = file.readinto(room)
        if not count:
            break
        position += count
        filled = kept + count
        # A block may end between \r and \n, so a single \r only counts before the last byte.
        border = buffer.rfind(b"\n", kept, filled) + 1 or buffer.rfind(b"\r", kept, filled - 1) + 1
        kept = filled - border
        if border:
            yield LineBlock(offset, _first(buffer, border))
            offset = position - kept
            buffer[:kept] = buffer[border:filled]
    if kept:
        yield LineBlock(offset, _first(buffer, kept))


def _first(buffer: bytearray, count: int) -> bytes:
    """The first bytes of a buffer."""
    with memoryview(buffer) as view:
        return bytes(view[:count])
