from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from opchain.common import Duration
from opchain.runtime.connectors.file_source import FileSource
from opchain.runtime.connectors.files.file_format import StreamFormat
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_builder_makes_a_source_of_lines(tmp_path: Path) -> None:
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


def test_a_format_is_a_stream_format() -> None:
    wrong: Any = "lines"
    with pytest.raises(TypeError, match="it takes a StreamFormat"):
        FileSource.for_record_stream_format(wrong, "a.txt")


def test_watching_a_folder_is_refused_by_name() -> None:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "a.txt")
    with pytest.raises(UnsupportedFeatureError, match="monitor_continuously"):
        builder.monitor_continuously(Duration.of_seconds(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: FileSource.for_bulk_file_format(cast("Any", "parquet"), "a"),
        lambda: lines().set_file_enumerator("own"),
        lambda: lines().set_split_assigner("own"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(call: Any) -> None:
    with pytest.raises(TypeError, match="it takes a (BulkFormat|File.*Provider)"):
        call()


def lines() -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), "a.txt")


@pytest.mark.parametrize("name", ["FileCompactStrategy", "FileCompactor", "StreamingFileSink"])
def test_names_that_are_missing_are_refused_when_they_are_imported(name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"there is no {name}"):
        exec(f"from opchain.datastream.connectors.file_system import {name}")  # noqa: S102
