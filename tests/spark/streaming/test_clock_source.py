from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.spark.streaming import clock_source
from opchain.runtime.spark.streaming.clock_source import ClockReader, ClockSource, write_due

if TYPE_CHECKING:
    from pathlib import Path


class Steps(UnboundedSource[int]):
    """Has `step` more numbers at each call of latest_position."""

    def __init__(self, step: int) -> None:
        self.step = step

    def initial_position(self, now_ms: int) -> int:
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        return start + self.step

    def splits_between(self, start: int, end: int, parallelism: int) -> Any:
        return [[(subtask, start, end)] for subtask in range(parallelism)]

    def splits(self, parallelism: int) -> Any:
        return []

    def read(self, split: Any, batch_size: int) -> Any:
        return iter(())


def reader(tmp_path: Path, *steps: int) -> ClockReader:
    sources = [(10 + number, Steps(step), 2) for number, step in enumerate(steps)]
    write_due(tmp_path / "due", None)
    return ClockReader(sources, tmp_path / "due")


def rows(found: ClockReader, start: Any, end: Any) -> list[tuple[int, int, Any]]:
    return [
        (source, subtask, pickle.loads(data))
        for partition in found.partitions(start, end)
        for source, subtask, data in found.read(partition)
    ]


def test_the_offset_contains_the_positions_of_all_sources(tmp_path: Path) -> None:
    found = reader(tmp_path, 5, 7)
    start = found.initialOffset()
    assert start == {"positions": [0, 0], "due": 0}
    end = found.latestOffset(start, None)
    assert end == {"positions": [5, 7], "due": 0}
    assert rows(found, start, end) == [
        (10, 0, (0, 0, 5)),
        (10, 1, (1, 0, 5)),
        (11, 0, (0, 0, 7)),
        (11, 1, (1, 0, 7)),
    ]


def test_a_source_without_new_records_has_no_rows(tmp_path: Path) -> None:
    found = reader(tmp_path, 0, 3)
    start = found.initialOffset()
    end = found.latestOffset(start, None)
    assert [source for source, _, _ in rows(found, start, end)] == [11, 11]


def test_without_new_records_and_due_timers_the_offset_does_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_source, "_now_ms", lambda: 1_000)
    found = reader(tmp_path, 0)
    start = found.initialOffset()
    write_due(tmp_path / "due", 1_001)
    assert found.latestOffset(start, None) == start


def test_a_due_timer_changes_the_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_source, "_now_ms", lambda: 1_000)
    found = reader(tmp_path, 0)
    start = found.initialOffset()
    write_due(tmp_path / "due", 1_000)
    end = found.latestOffset(start, None)
    assert end == {"positions": [0], "due": 1_000}
    assert rows(found, start, end) == []
    # It has not fired yet: the offset continues to change, even if the clock stands still.
    assert found.latestOffset(end, None)["due"] == 1_001
    write_due(tmp_path / "due", None)
    assert found.latestOffset(end, None) == end


def test_available_now_reads_up_to_the_positions_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_source, "_now_ms", lambda: 1_000)
    found = reader(tmp_path)
    found.prepareForTriggerAvailableNow()
    write_due(tmp_path / "due", 1_500)
    monkeypatch.setattr(clock_source, "_now_ms", lambda: 2_000)
    start = found.initialOffset()
    assert found.latestOffset(start, None) == start


def test_a_source_that_waits_for_its_alignment_group_gets_no_records(tmp_path: Path) -> None:
    found = reader(tmp_path, 5, 7)
    start = found.initialOffset()
    write_due(tmp_path / "due", None, {11: ()})
    assert found.latestOffset(start, None)["positions"] == [5, 0]
    write_due(tmp_path / "due", None, {10: (), 11: ()})
    assert found.latestOffset(start, None) == start
    found.prepareForTriggerAvailableNow()
    # There is nothing else to read, so the run would end.
    assert found.latestOffset(start, None)["positions"] == [5, 7]


def test_splits_that_wait_are_passed_to_their_source(tmp_path: Path) -> None:
    found = reader(tmp_path, 5)
    write_due(tmp_path / "due", None, {10: {"b", "a"}})
    found.latestOffset(found.initialOffset(), None)
    [(_, source, _)] = found._positions._sources
    assert source.waiting_splits == {"a", "b"}
    write_due(tmp_path / "due", None)
    found.latestOffset(found.initialOffset(), None)
    assert source.waiting_splits == set()


def test_spark_finds_the_data_source_by_its_options(tmp_path: Path) -> None:
    (tmp_path / "sources").write_bytes(pickle.dumps([]))
    write_due(tmp_path / "due", None)
    source = ClockSource({"sources": str(tmp_path / "sources"), "due": str(tmp_path / "due")})
    assert source.name() == "opchain-clock"
    assert source.streamReader(None).initialOffset() == {"positions": [], "due": 0}
    assert source.schema() == "source INT, subtask INT, data BINARY"


def test_a_spark_version_without_a_current_offset_continues_from_the_last_one(
    tmp_path: Path,
) -> None:
    """Before 4.2, the reader continues from the last planned offset, or from the one that the driver found."""
    found = reader(tmp_path, 5)
    end = found.latestOffset()
    assert end == found.latestOffset() == {"positions": [5], "due": 0}
    found.partitions(found.initialOffset(), end)
    assert found.latestOffset() == {"positions": [10], "due": 0}

    (tmp_path / "sources").write_bytes(pickle.dumps([(10, Steps(5), 2)]))
    options = {"sources": str(tmp_path / "sources"), "due": str(tmp_path / "due")}
    resumed = ClockSource(options | {"start": '{"positions": [30], "due": 4}'}).streamReader(None)
    assert resumed.latestOffset() == {"positions": [35], "due": 4}
