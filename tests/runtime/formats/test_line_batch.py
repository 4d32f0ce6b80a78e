from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from file_records import source_of
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.formats.text_lines import LineBatch, TextLineFormat, whole_text

if TYPE_CHECKING:
    from pathlib import Path


@given(st.lists(st.text(st.characters(exclude_characters="\n")), min_size=1))
def test_it_is_a_sequence_of_its_lines(lines: list[str]) -> None:
    assert len(LineBatch("\n".join(lines))) == len(lines)
    batch = LineBatch("\n".join(lines))
    assert list(batch) == lines
    assert len(batch) == len(lines)
    assert batch[-1] == lines[-1]
    assert batch[1:] == lines[1:]
    with pytest.raises(IndexError):
        batch[len(lines)]


def test_its_text_is_there_without_its_lines() -> None:
    batch = LineBatch("a b\n\nc")
    assert whole_text(batch) is batch.text
    assert whole_text(["a b", "", "c"]) == batch.text
    assert repr(batch) == "LineBatch('a b\\n\\nc')"


def test_files_of_lines_are_read_as_such_unless_batches_must_be_smaller(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\n\n")
    source = source_of(TextLineFormat(), tmp_path)
    ((split,),) = source.splits(1)
    (whole,) = source.read(split, 3)
    assert isinstance(whole, LineBatch)
    assert [list(whole)] == [["a", "b", ""]]
    assert list(source.read(split, 2)) == [["a", "b"], [""]]
