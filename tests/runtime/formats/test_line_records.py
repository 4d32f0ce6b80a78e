from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from file_records import Reader, read, source_of

from opchain.datastream import OutputTag
from opchain.runtime.files.malformed import MalformedRecord, MalformedRecordError
from opchain.runtime.formats import text_lines
from opchain.runtime.formats.text_lines import LineRecordsFormat, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from opchain.runtime.files.file_range import FileRange


class Numbers(LineRecordsFormat[int]):
    """A number on each line except the first."""

    def first_line(self, part: FileRange) -> int:
        return 0 if part.start else 1

    def decoder(self) -> Any:
        def decode(lines: Sequence[str]) -> list[int]:
            return [int(line) for line in lines if line]

        return decode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbftitle\r\n1\r\nx\xc3\xa4\r\n\r\n2\xff\r\n3")
    return tmp_path


@pytest.mark.parametrize("parallelism", [1, 2, 5, 30])
@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_valid_lines_are_read_and_malformed_ones_reported_with_their_place(
    folder: Path, parallelism: int, batch_size: int
) -> None:
    reader = Reader()
    source = source_of(Numbers(), folder, malformed=OutputTag("bad"))
    source.open(reader)
    assert read(source, parallelism, batch_size) == [1, 3]
    path = str(folder / "a.txt")
    assert reader.errors == 2
    assert [record for _, record in reader.emitted] == [
        MalformedRecord(path, "byte 13", "xä", "invalid literal for int() with base 10: 'xä'"),
        MalformedRecord(path, "byte 20", "2\ufffd", "it is not UTF-8"),
    ]


def test_the_first_malformed_line_fails_the_job_by_default(folder: Path) -> None:
    with pytest.raises(
        MalformedRecordError, match=r"a\.txt', byte 13: 'xä' is malformed"
    ) as failed:
        read(source_of(Numbers(), folder))
    notes = getattr(failed.value, "__notes__", [])
    assert notes == [f"while reading '{folder / 'a.txt'}' from byte 0 to byte 25"]


def test_the_reason_is_shown_on_one_line() -> None:
    assert reason_of(ValueError("a\nb")) == "a b"
    assert reason_of(KeyError()) == "KeyError"


def test_a_file_of_malformed_lines_is_skipped_in_linear_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_bytes(b"title\n" + b"x\n" * 500)
    searched: list[int] = []
    found = text_lines.line_offsets
    monkeypatch.setattr(
        text_lines, "line_offsets", lambda block: searched.append(1) or found(block)
    )
    reader = Reader()
    source = source_of(Numbers(), tmp_path, malformed="skip")
    source.open(reader)
    assert read(source, batch_size=10) == []
    assert reader.errors == 500
    assert len(searched) == 1
