from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from opchain.datastream import OutputTag
from opchain.runtime.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSplitAssignerProvider,
)
from opchain.runtime.files.file_range import FileRange
from opchain.runtime.formats.text_lines import StreamFormat, TextLineFormat

if TYPE_CHECKING:
    from pathlib import Path


def test_for_record_stream_format_builds_a_source_of_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("ä\nb\n".encode("latin-1"))
    builder = FileSource.for_record_stream_format(
        StreamFormat.text_line_format("latin-1"), str(tmp_path)
    )
    source = builder.process_static_file_set().build()
    ((split,),) = source.splits(1)
    assert [list(batch) for batch in source.read(split, 10)] == [["ä", "b"]]
    assert source.is_bounded


def test_utf_8_is_the_default(tmp_path: Path) -> None:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path)
    assert repr(builder.build().file_format) == "TextLineFormat('UTF-8')"


def test_a_format_that_is_not_a_stream_format_is_refused() -> None:
    wrong: Any = "lines"
    with pytest.raises(TypeError, match="it takes a StreamFormat"):
        FileSource.for_record_stream_format(wrong, "a.txt")


def test_monitor_continuously_takes_a_duration() -> None:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "a.txt")
    with pytest.raises(TypeError, match="monitor_continuously got 5; it takes a Duration"):
        builder.monitor_continuously(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: FileSource.for_bulk_file_format(cast("Any", "parquet"), "a"),
        lambda: lines().set_file_enumerator("own"),
        lambda: lines().set_split_assigner("own"),
    ],
)
def test_settings_of_another_type_are_refused(call: Any) -> None:
    with pytest.raises(TypeError, match=r"it takes a (BulkFormat|File.*Provider)"):
        call()


def lines() -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), "a.txt")


def test_files_are_split_unless_the_enumerator_is_non_splitting(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("line\n" * 100)
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path)
    assigner = FileSplitAssignerProvider.locality_aware_split_assigner()
    for enumerator, parts in (
        (FileEnumeratorProvider.default_splittable_file_enumerator(), [1, 1, 1]),
        (FileEnumeratorProvider.default_non_splittable_file_enumerator(), [1, 0, 0]),
    ):
        builder.set_file_enumerator(enumerator).set_split_assigner(assigner)
        assert [len(part) for part in builder.build().splits(3)] == parts


@pytest.mark.parametrize("policy", ["fail", "skip", OutputTag("bad")])
def test_on_malformed_sets_the_policy(policy: Any) -> None:
    assert lines().on_malformed(policy).build().malformed.policy == policy


def test_an_unknown_policy_for_malformed_records_is_refused() -> None:
    with pytest.raises(ValueError, match="on_malformed got 'drop'"):
        lines().on_malformed("drop")


def test_a_format_may_set_the_default_policy_for_malformed_records() -> None:
    class Lenient(TextLineFormat):
        on_malformed = "skip"

    builder = FileSource.for_record_stream_format(Lenient(), "a.txt")
    assert builder.build().malformed.policy == "skip"
    assert builder.on_malformed("fail").build().malformed.policy == "fail"


def test_a_planned_source_has_a_fixed_list_of_splits(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b\n")
    planned = FileSource(TextLineFormat(), tmp_path).planned(2)
    (tmp_path / "a.txt").write_text("a\n")
    assert planned.splits(2) == [
        [FileRange(str(tmp_path / "b.txt"), 0, 1)],
        [FileRange(str(tmp_path / "b.txt"), 1, 2)],
    ]
    assert [file.path for file in planned.files()] == [
        str(tmp_path / "a.txt"),
        str(tmp_path / "b.txt"),
    ]
    assert len(planned.splits(1)[0]) == 2
