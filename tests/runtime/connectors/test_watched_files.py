from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Duration
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.runtime.connectors.watched_files import WatchedFileSource, spark_pattern

if TYPE_CHECKING:
    from pathlib import Path

pa = pytest.importorskip("pyarrow")


def watched(folder: Path) -> Any:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder))
    return builder.monitor_continuously(Duration.of_seconds(1)).build()


def delivery(*paths: str) -> bytes:
    batch = pa.record_batch({"path": list(paths), "length": [1] * len(paths)})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    found: bytes = out.getvalue().to_pybytes()
    return found


def test_a_watched_source_never_ends_and_a_static_one_does(tmp_path: Path) -> None:
    source = watched(tmp_path)
    assert isinstance(source, WatchedFileSource)
    assert not source.is_bounded
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    static = builder.monitor_continuously(Duration.of_seconds(1)).process_static_file_set().build()
    assert isinstance(static, FileSource)


def test_the_files_that_are_delivered_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "b c%20.txt").write_text("x\ny\n")
    (tmp_path / "a.txt").write_text("z\n")
    paths = [f"file:{tmp_path}/b c%20.txt", f"file://{tmp_path}/a.txt", str(tmp_path / "a.txt")]
    records = [
        record
        for batch in watched(tmp_path).read_delivery(delivery(*paths), 10)
        for record in batch
    ]
    assert records == ["x", "y", "z", "z"]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("in", "in"), ("[in]", r"\[in\]"), ("a{b}*?", r"a\{b\}\*\?"), ("none*", "none*")],
)
def test_a_folder_that_is_there_is_no_pattern(tmp_path: Path, name: str, pattern: str) -> None:
    if not name.startswith("none"):
        (tmp_path / name).mkdir()
    assert spark_pattern(f"{tmp_path}/{name}") == f"{tmp_path}/{pattern}"
