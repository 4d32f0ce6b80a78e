from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from typing import Any

import pytest

from opchain.runtime.errors import MissingLibraryError
from opchain.runtime.files.line_blocks import decompressed, is_compressed

DATA = b"".join(b"line %d\n" % number for number in range(50_000))


def zstd(data: bytes) -> bytes:
    compressed: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return compressed


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("a.gz", gzip.compress),
        ("a.txt.gzip", gzip.compress),
        ("a.bz2", bz2.compress),
        ("a.XZ", lzma.compress),
        ("a.deflate", zlib.compress),
        ("a.zst", zstd),
        ("a.zstd", lambda data: zstd(data[:7]) + zstd(data[7:])),
        ("a.gz", lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:])),
    ],
)
def test_a_file_is_decompressed_by_its_extension(name: str, compress: Any) -> None:
    assert is_compressed(name)
    file = io.BytesIO(compress(DATA))
    with decompressed(file, name) as unpacked:
        parts = iter(lambda: unpacked.read(1000), b"")
        assert b"".join(parts) == DATA
    with decompressed(io.BytesIO(compress(DATA)[:-9]), name) as unpacked:
        if name.startswith("a.zst"):
            assert DATA.startswith(unpacked.read())
        else:
            with pytest.raises(EOFError):
                unpacked.read()


@pytest.mark.parametrize("name", ["a.txt", "gz", "a.gz/b", "/a/.bz2x"])
def test_files_with_other_extensions_are_read_unchanged(name: str) -> None:
    assert not is_compressed(name)
    file = io.BytesIO(b"a")
    assert decompressed(file, name) is file


def test_a_missing_compression_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingLibraryError, match=r"reading a .zst file .*'opchain\[files\]'"):
        decompressed(io.BytesIO(), "a.zst")
