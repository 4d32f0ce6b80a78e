from __future__ import annotations

import gzip
import io
import re
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.runtime.files import line_blocks as module
from opchain.runtime.files.file_range import FileRange
from opchain.runtime.files.line_blocks import LineBlock, line_blocks, line_offsets

if TYPE_CHECKING:
    from pathlib import Path


class _Unbuffered:
    """Opens files without buffering, unlike the local file system."""

    def open_input(self, path: str) -> BinaryIO:
        return io.FileIO(path)  # type: ignore[return-value]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    data=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n"]), max_size=12).map(b"".join),
    cuts=st.sets(st.integers(0, 20)),
    block_size=st.integers(1, 9),
    is_local=st.booleans(),
)
def test_each_line_is_read_once_and_whole_for_any_split_of_the_file(
    tmp_path: Path, data: bytes, cuts: set[int], block_size: int, is_local: bool
) -> None:
    path = tmp_path / "a"
    path.write_bytes(data)
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_SIZE", block_size)
        patch.setattr(module, "_SEARCH_SIZE", block_size)
        if not is_local:
            patch.setattr(module, "file_system_of", lambda _: _Unbuffered())
        blocks = [
            block
            for start, stop in pairwise(borders)
            for block in line_blocks(FileRange(str(path), start, stop))
        ]
    assert b"".join(block.data for block in blocks) == data
    starts = {0} | {match.end() for match in re.finditer(rb"\r\n|\n|\r", data)}
    for block in blocks:
        assert block.offset in starts
        assert data.startswith(block.data, block.offset)


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_a_compressed_file_is_read_as_one_range(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a\nb") if name.endswith("gz") else b"a\nb")
    assert list(line_blocks(FileRange(str(path), 0, None))) == [
        LineBlock(0, b"a\n"),
        LineBlock(2, b"b"),
    ]


def test_line_offsets_returns_the_position_of_each_line_in_the_file() -> None:
    assert line_offsets(LineBlock(100, b"a\r\nbc\r\nd")) == [100, 103, 107]
