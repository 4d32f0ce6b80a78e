from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.sink import Committer, Sink, SinkWriter


class Writer(SinkWriter[Any]):
    def __init__(self) -> None:
        self.written: list[Any] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self.written.append((value, timestamp))


class Plain(Sink[Any]):
    def create_writer(self, context: Any) -> SinkWriter[Any]:
        return Writer()


class Quiet(Committer):
    def commit(self, committables: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("timestamps", "written"),
    [(None, [("a", None), ("b", None)]), ([1, None], [("a", 1), ("b", None)])],
)
def test_write_batch_writes_record_by_record_by_default(
    timestamps: Any, written: list[Any]
) -> None:
    writer = Writer()
    writer.write_batch(["a", "b"], timestamps)
    assert writer.written == written


def test_a_sink_writer_requires_only_write() -> None:
    writer = Writer()
    writer.flush(end_of_input=True)
    assert list(writer.prepare_commit()) == []
    writer.close()
    Quiet().close()


def test_a_sink_reads_timestamps_changes_records_and_commits_nothing_by_default() -> None:
    sink = Plain()
    assert (sink.reads_timestamps, sink.changes_records) == (True, True)
    assert sink.create_committer() is None
    assert not sink.has_committer
