"""Spark's file stream reads each part file once, even if files are moved or deleted between runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from file_sinks import commit, sink_to, written

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("clean_source", ["archive", "delete"])
def test_each_run_of_a_sink_is_read_although_earlier_files_are_removed(
    session: SparkSession, tmp_path: Path, clean_source: str
) -> None:
    output, archive, read = tmp_path / "output", tmp_path / "archive", tmp_path / "read"
    output.mkdir()
    options = {"cleanSource": clean_source, "sourceArchiveDir": str(archive)}

    def read_all() -> None:
        rows = session.readStream.options(**options).text(f"file://{output}")
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).format("text").start(str(read)).awaitTermination()

    for run in range(4):
        sink = sink_to(output)  # the writer of each run counts its files from 0
        commit(sink, written(sink, f"record {run}", checkpoint_id=run + 1))
        read_all()
    found = sorted(row.value for row in session.read.text(f"file://{read}").collect())
    assert found == [f"record {run}" for run in range(4)]
    left = [path for path in output.iterdir() if path.is_file()]
    assert len(left) < 4  # Spark has removed some of the files
    if clean_source == "archive":
        archived = [path.read_text() for path in archive.rglob("part-*") if path.is_file()]
        assert sorted(archived + [path.read_text() for path in left]) == [
            f"record {run}\n" for run in range(4)
        ]
