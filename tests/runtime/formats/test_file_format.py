from __future__ import annotations

from typing import TYPE_CHECKING

from file_records import read, source_of

from opchain.runtime.files.file_systems import file_system_of
from opchain.runtime.formats.text_lines import StreamFormat

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from opchain.runtime.files.file_range import FileRange
    from opchain.runtime.files.malformed import MalformedRecords


class Sizes(StreamFormat[int]):
    """The least that a format of one's own needs."""

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[int]]:
        with file_system_of(part.path).open_input(part.path) as file:
            yield [len(file.read())]


def test_a_format_of_ones_own_reads_whole_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").write_bytes(b"12")
    for parallelism in (1, 2, 7):
        assert read(source_of(Sizes(), tmp_path), parallelism) == [5, 2]
    assert Sizes().get_produced_type() is None


def test_lines_of_text_are_the_format_that_is_built_in() -> None:
    assert repr(StreamFormat.text_line_format("latin-1")) == "TextLineFormat('latin-1')"
