"""Watermarks per split over epochs: partitions, files, restarts and changes of parallelism."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest
from epoch_runs import EpochRun, GivenSource
from forms import seen

from opchain.common import Duration, WatermarkStrategy
from opchain.datastream.functions import ProcessFunction
from opchain.runtime.epochs.event_time import sources_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from opchain.datastream import StreamExecutionEnvironment
    from opchain.runtime.functions.source import Source

cloudpickle.register_pickle_by_value(sys.modules[__name__])

ASCENDING: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value
)


class Partitions(GivenSource):
    """Reads what a test delivers: (partition, numbers), which are their own timestamps."""

    def delivered_splits(self, delivery: bytes) -> Mapping[str, Any]:
        return dict(pickle.loads(delivery))

    def read(self, split: Sequence[int], batch_size: int) -> Iterator[Sequence[int]]:
        for value in split:
            yield [value]


class Files(Partitions):
    """Splits that end after the epoch in which they are read, like files."""

    splits_end = True


class Watermark(ProcessFunction[Any, Any]):
    """The watermark after each record."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, max(-1, ctx.timer_service().current_watermark())


def drawing(source: Source[Any], strategy: Any = ASCENDING) -> Any:
    def draw(env: StreamExecutionEnvironment) -> None:
        stream = env.from_source(source, strategy, "in").uid("in").process(Watermark())
        seen(stream, "out")

    return draw


@pytest.mark.parametrize("restarts", [False, True])
def test_a_partition_holds_the_watermark_back_in_later_epochs(
    tmp_path: Path, *, restarts: bool
) -> None:
    run = EpochRun(drawing(Partitions()), tmp_path)
    first = run.run(**{"in": [("a", [10, 20]), ("b", [])]})
    assert first.records("out") == [(10, -1), (20, -1)]
    if restarts:
        run = run.restarted()
    second = run.run(**{"in": [("a", [30, 40]), ("b", [12, 50])]})
    assert second.records("out") == [(12, -1), (50, 11), (30, 19), (40, 29)]
    # Partition b is read by another subtask now.
    third = run.run(**{"in": [("a", [41, 42])]})
    assert third.records("out") == [(41, 39), (42, 40)]
    run.close()


def test_a_partition_keeps_its_watermark_generator_at_another_parallelism(tmp_path: Path) -> None:
    run = EpochRun(drawing(Partitions()), tmp_path, parallelism=2)
    run.run(**{"in": [("a", [100]), ("b", [200])]})
    run = run.restarted(parallelism=1)
    # One subtask reads both partitions now. The minimum watermark is 99, the watermark of partition a.
    ran = run.run(**{"in": [("b", [201]), ("a", [])]})
    assert ran.records("out") == [(201, 99)]
    assert run.run(**{"in": [("b", []), ("a", [300, 301])]}).records("out") == [
        (300, 99),
        (301, 200),
    ]
    run.close()


def test_files_of_one_epoch_do_not_make_each_others_records_late(tmp_path: Path) -> None:
    run = EpochRun(drawing(Files()), tmp_path)
    ran = run.run(**{"in": [("x", [10, 50]), ("y", [11, 40])]})
    assert ran.records("out") == [(10, -1), (11, -1), (50, 9), (40, 10)]
    # Both files have ended: only the file of the next epoch determines the watermark.
    assert run.run(**{"in": [("z", [60, 61])]}).records("out") == [(60, 49), (61, 59)]
    run.close()


def test_an_idle_partition_does_not_hold_the_watermark_back(tmp_path: Path) -> None:
    strategy = ASCENDING.with_idleness(Duration.of_millis(100))
    run = EpochRun(drawing(Partitions(), strategy), tmp_path)
    ran = run.run(0, **{"in": [("a", [10]), ("b", [])]})
    assert run.next_timer_ms(ran) == 101
    ran = run.run(60, **{"in": [("a", [20, 21]), ("b", [])]})
    assert ran.records("out") == [(20, -1), (21, -1)]
    assert run.next_timer_ms(ran) == 101
    assert run.next_timer_ms(run.run(101)) == 161
    ran = run.run(200, **{"in": [("a", [30, 31]), ("b", [])]})
    assert ran.records("out") == [(30, 20), (31, 29)]
    run.close()


@pytest.mark.parametrize("idle_at", [(), (101,), (101, 102)])
@pytest.mark.parametrize("restarts", [False, True])
def test_no_record_is_late_when_idle_partitions_become_active_in_one_epoch(
    tmp_path: Path, idle_at: tuple[int, ...], *, restarts: bool
) -> None:
    run = EpochRun(
        drawing(Partitions(), ASCENDING.with_idleness(Duration.of_millis(100))), tmp_path
    )

    def watermarks(now: int, *splits: tuple[str, list[int]]) -> list[tuple[int, int]]:
        nonlocal run
        run = run.restarted() if restarts else run
        return run.run(now, **({"in": splits} if splits else {})).records("out")

    watermarks(0, ("a", [10]), ("b", [11]))
    for now in idle_at:
        watermarks(now)
    found = watermarks(200, ("a", [30, 40]), ("b", [20, 35]))
    assert found == [(30, 9), (20, 10), (35, 19), (40, 29)]
    # The source waits for an idle partition until the partition has been read.
    assert watermarks(400, ("a", [50, 60]), ("b", [])) == [(50, 34), (60, 49)]
    assert watermarks(401, ("a", [61]), ("b", [])) == [(61, 59)]
    run.close()


def splits_ahead(run: EpochRun, outcome: Any) -> list[list[str]]:
    return [sorted(splits) for splits in sources_ahead(run.job, outcome.metrics).values()]


def test_splits_of_one_source_that_are_ahead_wait(tmp_path: Path) -> None:
    strategy = ASCENDING.with_watermark_alignment("group", Duration.of_millis(10))
    idle = strategy.with_idleness(Duration.of_millis(100))

    def draw(env: StreamExecutionEnvironment) -> None:
        seen(env.from_source(Partitions(), idle, "in").uid("in"), "out")

    run = EpochRun(draw, tmp_path)
    ran = run.run(0, **{"in": [("a", [5]), ("b", [500])]})
    assert splits_ahead(run, ran.outcome) == [["b"]]
    run.run(60, **{"in": [("a", [100]), ("b", [])]})
    # The split that waits for its group is idle now, and still waits.
    ran = run.run(120, **{"in": [("a", [200]), ("b", [])]})
    assert splits_ahead(run, ran.outcome) == [["b"]]
    ran = run.run(121, **{"in": [("a", [495]), ("b", [])]})
    assert splits_ahead(run, ran.outcome) == []
    run.close()
