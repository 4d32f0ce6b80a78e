from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import SeenSink, seen

from opchain.common import Types, WatermarkStrategy
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.epochs.epoch_progress import EpochProgress, epoch_progress
from opchain.runtime.functions.source_sink_functions import TwoPhaseSinkFunction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forms import Ran


class Count(KeyedProcessFunction[str, Any, str]):
    """Counts words, and sets a processing-time timer for each new word."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        if self.count.value() is None:
            ctx.timer_service().register_processing_time_timer(5_000)
        self.count.update((self.count.value() or 0) + 1)
        if value[0] != "silent":
            yield f"{value[0]} {self.count.value()}"


def words(env: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda pair, _: pair[1]
    )
    stream = given(env, "words", strategy)
    seen(stream.key_by(lambda pair: pair[0]).process(Count()).uid("count"), "counts")


def progress_of(ran: Ran, epoch: int, now_ms: int) -> EpochProgress:
    return epoch_progress(
        ran.job,
        ran.outcome,
        Epoch(epoch, now_ms),
        run_id="run",
        batch=epoch - 1,
        checkpoint=f"place/chk-{epoch}",
        durations_ms={"waiting": 500.04, "tasks": 1200.06, "checkpoint": 30.0, "commit": 20.0},
    )


@pytest.fixture
def epochs(tmp_path: Path) -> list[EpochProgress]:
    run = EpochRun(words, tmp_path, 2)
    first = run.run(1_000, words=[("a", 100), ("b", 110), ("a", 120), ("silent", 130)])
    second = run.run(2_000, words=[("c", 200), ("a", 300)])
    third = run.run(3_000, words=[])
    run.close()
    return [
        progress_of(ran, number, 1_000 * number)
        for number, ran in enumerate((first, second, third), start=1)
    ]


def test_records_are_counted_per_epoch(epochs: list[EpochProgress]) -> None:
    assert [epoch.records_in for epoch in epochs] == [4, 2, 0]
    assert [epoch.records_out for epoch in epochs] == [3, 2, 0]
    source, counts = epochs[0].vertices
    assert (source.records_in, source.records_out, source.bytes_in) == (4, 4, 0)
    assert counts.bytes_in == source.bytes_out > 0
    count = next(item for item in counts.operators if item.uid == "count")
    assert (count.records_in, count.records_out) == (4, 3)


def test_records_of_two_phase_sinks_are_counted_as_output(tmp_path: Path) -> None:
    def draw(env: Any) -> None:
        sink = SeenSink("out", reads_timestamps=False)
        given(env, "numbers").add_sink(TwoPhaseSinkFunction(sink))

    run = EpochRun(draw, tmp_path, 1)
    ran = run.run(1_000, numbers=[1, 2, 3])
    run.close()
    assert progress_of(ran, 1, 1_000).records_out == 3


def test_the_progress_has_state_entries_state_bytes_and_written_bytes(
    epochs: list[EpochProgress],
) -> None:
    assert [epoch.state_entries for epoch in epochs] == [3, 4, 4]
    assert epochs[0].written_bytes > epochs[1].written_bytes > epochs[2].written_bytes == 0
    assert epochs[1].state_bytes > epochs[0].state_bytes > epochs[0].written_bytes
    # An epoch without changes refers to the existing files.
    assert epochs[2].state_bytes == epochs[1].state_bytes
    assert [epoch.next_timer_ms for epoch in epochs] == [5_000, 5_000, 5_000]


def test_the_watermark_is_the_minimum_and_its_lag_is_measured_by_the_clock(
    epochs: list[EpochProgress],
) -> None:
    # Each of the two subtasks reads half of the records; Flink's watermark is one behind them.
    assert [epoch.watermark for epoch in epochs] == [109, 199, 199]
    assert [epoch.watermark_lag_ms for epoch in epochs] == [1_000 - 109, 2_000 - 199, 3_000 - 199]


def test_the_duration_of_an_epoch_excludes_waiting(epochs: list[EpochProgress]) -> None:
    assert epochs[0].duration_ms == 1250.1
    assert epochs[0].durations_ms["waiting"] == 500.0
    assert epochs[0].records_per_second == pytest.approx(4 / 1.7501)


def test_the_progress_is_converted_to_json_and_back(epochs: list[EpochProgress]) -> None:
    for epoch in epochs:
        values = json.loads(json.dumps(epoch.as_dict(), allow_nan=False)) | {"later": "addition"}
        assert EpochProgress.from_dict(values) == epoch


def test_the_minimum_watermark_is_shown_as_none(tmp_path: Path) -> None:
    run = EpochRun(lambda env: seen(given(env, "words"), "words"), tmp_path)
    progress = progress_of(run.run(words=["a"]), 1, 0)
    run.close()
    assert (progress.watermark, progress.watermark_lag_ms) == (None, None)
    assert (progress.state_entries, progress.next_timer_ms) == (0, None)
