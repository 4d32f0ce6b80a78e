"""Event time of files on executors: watermarks per file, and warnings about late records."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest

from opchain.common import Configuration, Duration, Time, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.connectors.unbounded_source import UnboundedSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opchain.spark import EpochProgress

cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]
STRATEGY: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda line, _: int(line)
)
NONE: Any = WatermarkStrategy.no_watermarks()


def environment(folder: Path | None = None) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "spark")
    configuration.set_string("opchain.batch-size", "10")
    if folder is not None:
        configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
        configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(2)


def write(folder: Path, name: str, times: range) -> None:
    (folder / f".{name}").write_text("".join(f"{time}\n" for time in times))
    (folder / f".{name}").rename(folder / name)


def counts(stream: Any) -> Any:
    windows = TumblingEventTimeWindows.of(Time.milliseconds(100))
    keyed = stream.map(lambda line: (int(line) // 100, 1)).key_by(lambda pair: pair[0])
    return (
        keyed.window(windows).reduce(lambda a, b: (a[0], a[1] + b[1])).name("counts").uid("counts")
    )


def files(folder: Path) -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder))


class Ticks(UnboundedSource[int]):
    """The first hundred multiples of a step, ten in each epoch."""

    def __init__(self, step: int) -> None:
        self.step = step

    def initial_position(self, now_ms: int) -> int:
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        return min(start + 10, 100)

    def splits_between(self, start: int, end: int, parallelism: int) -> Any:
        return [[range(start, end)], *([] for _ in range(parallelism - 1))]

    def splits(self, parallelism: int) -> Any:
        raise AssertionError("it is read between positions")

    def read(self, split: range, batch_size: int) -> Iterator[list[int]]:
        yield [number * self.step for number in split]


class Pairs(UnboundedSource[int]):
    """Two subtasks with two records each in each of ten epochs. The second subtask begins before the first one."""

    def initial_position(self, now_ms: int) -> int:
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        return min(start + 1, 10)

    def splits_between(self, start: int, end: int, parallelism: int) -> Any:
        base = 1000 * start
        return [[[base + 500, base + 999]], [[base + 100, base + 998]]] if start < end else [[], []]

    def splits(self, parallelism: int) -> Any:
        raise AssertionError("it is read between positions")

    def read(self, split: list[int], batch_size: int) -> Iterator[list[int]]:
        yield split


def late_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if " as late" in record.message]


@pytest.mark.parametrize("is_assigned_downstream", [False, True])
def test_no_record_of_files_of_different_sizes_is_late(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_assigned_downstream: bool
) -> None:
    write(tmp_path, "a", range(0, 2000, 10))
    write(tmp_path, "b", range(0, 2000, 2))
    env = environment()
    source = files(tmp_path).build()
    if is_assigned_downstream:
        stream = env.from_source(source, NONE, "lines").map(str)
        stream = stream.assign_timestamps_and_watermarks(STRATEGY)
    else:
        stream = env.from_source(source, STRATEGY, "lines")
    with counts(stream).execute_and_collect() as found:
        assert sorted(found) == [(window, 60) for window in range(20)]
    assert late_warnings(caplog) == []


def test_a_bounded_job_warns_of_late_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path, name, range(0, 1000, 5))
    env = environment()
    stream = env.from_source(files(tmp_path).build(), NONE, "lines").map(str)
    counts(stream.assign_timestamps_and_watermarks(STRATEGY)).collect_async()
    metrics = env.execute().metrics
    dropped = metrics.operator("counts").late_records_dropped
    assert 0 < dropped <= 200
    (warning,) = late_warnings(caplog)
    assert f"dropped {dropped:,} of 600 records as late" in warning
    assert "Give the watermark strategy to from_source()" in warning


def test_files_of_one_epoch_do_not_make_each_others_records_late(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def run() -> list[Any]:
        env = environment(tmp_path)
        source = files(folder).monitor_continuously(Duration.of_seconds(1)).build()
        stream = env.from_source(source, STRATEGY, "lines").uid("lines")
        with counts(stream).execute_and_collect() as found:
            return sorted(found)

    for name in ("a", "b", "c", "d"):
        write(folder, name, range(0, 1000, 5))
    assert run() == [(window, 80) for window in range(9)]
    assert late_warnings(caplog) == []
    # These records are in a later epoch, and the windows before 900 have closed.
    for name in ("e", "f"):
        write(folder, name, range(0, 1200, 5))
    assert run() == [(9, 120), (10, 40)]
    (warning,) = late_warnings(caplog)
    assert "'counts' (" in warning
    assert "dropped 360 of 480 records as late" in warning


@pytest.mark.parametrize("target", ["spark", "local"])
def test_no_record_is_late_if_the_subtasks_of_a_source_are_idle_before_each_epoch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, target: str
) -> None:
    env = environment(tmp_path)
    env.configure(Configuration().set_string("execution.target", target))
    idle = STRATEGY.with_idleness(Duration.of_millis(1))
    stream = env.from_source(Pairs(), idle, "pairs").uid("pairs")
    with counts(stream).execute_and_collect() as found:
        windows = sorted(found)
    # The last window is still open.
    assert windows == [(10 * n + m, 1 + (m == 9)) for n in range(10) for m in (1, 5, 9)][:-1]
    assert late_warnings(caplog) == []


def test_an_aligned_source_that_is_ahead_gets_no_input(tmp_path: Path) -> None:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )
    aligned = strategy.with_watermark_alignment("group", Duration.of_millis(150))
    env = environment(tmp_path).set_parallelism(1)
    fast = env.from_source(Ticks(10), aligned, "fast").uid("fast")
    slow = env.from_source(Ticks(1), aligned, "slow").uid("slow")
    epochs: list[EpochProgress] = []
    env.add_epoch_listener(epochs.append)
    with fast.union(slow).execute_and_collect() as found:
        assert sorted(found) == sorted([*range(0, 1000, 10), *range(100)])
    read = {"fast": 0, "slow": 0}
    for epoch in epochs:
        for vertex in epoch.vertices:
            for operator in vertex.operators:
                if operator.uid in read and operator.records_in:
                    # 90 is the watermark of ten records of the fast source; each epoch adds 100.
                    if operator.uid == "fast" and read["slow"] < 100:
                        assert 10 * read["fast"] <= read["slow"] + 150 + 11
                    read[operator.uid] += operator.records_in
    assert read == {"fast": 100, "slow": 100}


def test_a_backlog_of_files_is_spread_over_epochs(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(12):
        write(folder, f"{number:02}", range(number * 100, number * 100 + 100, 10))
    env = environment(tmp_path)
    builder = files(folder).monitor_continuously(Duration.of_seconds(1)).set_max_files_per_epoch(5)
    epochs: list[EpochProgress] = []
    env.add_epoch_listener(epochs.append)
    stream = env.from_source(builder.build(), STRATEGY, "lines").uid("lines")
    with counts(stream).execute_and_collect() as found:
        # Files of different subtasks may be in one window; the last windows stay open.
        assert {count for _, count in found} == {10}
    assert [epoch.records_in for epoch in epochs if epoch.records_in] == [50, 50, 20]
