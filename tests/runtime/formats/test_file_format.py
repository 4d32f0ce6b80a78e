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
    """The minimum that a user's format needs."""

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[int]]:
        with file_system_of(part.path).open_input(part.path) as file:
            yield [len(file.read())]


def test_a_users_format_reads_whole_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").write_bytes(b"12")
    for parallelism in (1, 2, 7):
        assert read(source_of(Sizes(), tmp_path), parallelism) == [5, 2]
    assert Sizes().get_produced_type() is None


def test_text_line_format_is_the_built_in_format() -> None:
    assert repr(StreamFormat.text_line_format("latin-1")) == "TextLineFormat('latin-1')"
