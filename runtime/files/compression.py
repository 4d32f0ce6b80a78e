"""Files that are compressed, told by the ends of their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from opchain.runtime.errors import imported

if TYPE_CHECKING:
    from collections.abc import Callable

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
