from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from file_records import read, read_ranges, source_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.runtime.formats.text_lines import TextLineFormat, with_line_feeds

if TYPE_CHECKING:
    from pathlib import Path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), max_size=9),
    end=st.sampled_from(["\n", "\r\n"]),
    cuts=st.sets(st.integers(0, 60)),
)
def test_each_line_is_read_once_for_any_ranges(
    tmp_path: Path, lines: list[str], end: str, cuts: set[int]
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("".join(line + end for line in lines).encode())
    assert read_ranges(TextLineFormat(), path, cuts, batch_size=2) == lines


def test_can_be_cut_is_false_for_compressed_files_and_wide_character_sets() -> None:
    assert TextLineFormat().can_be_cut("a.txt")
    assert not TextLineFormat().can_be_cut("a.txt.gz")
    assert not TextLineFormat("utf-16").can_be_cut("a.txt")
    with pytest.raises(ValueError, match="'klingon' is not a character set"):
        TextLineFormat("klingon")


def test_a_compressed_file_in_utf_16_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress("ä\r\nb\rc".encode("utf-16")))
    assert read(source_of(TextLineFormat("utf-16"), tmp_path), 2) == ["ä", "b", "c"]


def test_line_ends_become_line_feeds() -> None:
    assert with_line_feeds("a\r\nb\rc\n") == "a\nb\nc\n"


@pytest.mark.parametrize("name", ["a.txt", "a.gz"])
@pytest.mark.parametrize(("charset", "written"), [("UTF-16", "utf-16-be"), ("UTF-32", "utf-32-be")])
def test_utf_16_without_a_byte_order_mark_is_big_endian_as_in_java(
    tmp_path: Path, name: str, charset: str, written: str
) -> None:
    for mark in ("", "\ufeff"):
        data = f"{mark}ä\r\nb".encode(written)
        (tmp_path / name).write_bytes(gzip.compress(data) if name == "a.gz" else data)
        assert read(source_of(TextLineFormat(charset), tmp_path)) == ["ä", "b"]
