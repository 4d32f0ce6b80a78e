"""The last epoch of a job that is stopped with drain: event time ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen

from opchain.common import Time, WatermarkStrategy
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.connectors.collection import CollectionSource

if TYPE_CHECKING:
    from pathlib import Path


def sums(env: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    windows = (
        given(env, "clicks", strategy)
        .key_by(lambda click: click[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    )
    seen(windows.reduce(lambda a, b: (a[0], a[1] + b[1])), "sums")


@pytest.mark.parametrize("form", ["interpreted", "generated", "inlined"])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_all_windows_fire_in_the_epoch_that_drains(
    tmp_path: Path, form: str, parallelism: int
) -> None:
    run = EpochRun(sums, tmp_path, parallelism, form)
    clicks = [("a", 1), ("b", 2), ("a", 3), ("b", 4)]
    assert run.run(clicks=clicks).records("sums") == []
    assert sorted(run.run(clicks=[("a", 5), ("b", 6)]).records("sums")) == []
    ran = run.run(drains=True)
    assert sorted(ran.records("sums")) == [("a", 9), ("b", 12)]
    (vertex, *_) = ran.outcome.metrics.vertices
    assert vertex.operators[0].output_watermark == 2**63 - 1
    run.close()


@pytest.mark.parametrize("parallelism", [1, 2])
def test_event_time_starts_again_after_a_drained_savepoint(
    tmp_path: Path, parallelism: int
) -> None:
    run = EpochRun(sums, tmp_path)
    run.run(clicks=[("a", 1)])
    run.run(drains=True)
    again = run.restarted(parallelism)
    assert again.run(clicks=[("a", 3), ("b", 4)]).records("sums") == []
    assert sorted(again.run(drains=True).records("sums")) == [("a", 3), ("b", 4)]
    run.close()
    again.close()


def sums_of_two(env: Any) -> None:
    """Windows over a bounded and an unbounded source."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[1]
    )
    ends = env.from_source(CollectionSource([("a", 1)]), strategy, "ends").uid("ends")
    both = ends.union(given(env, "clicks", strategy)).rebalance().map(lambda click: click)
    windows = both.key_by(lambda click: click[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(10))
    )
    seen(windows.reduce(lambda a, b: (a[0], a[1] + b[1])), "sums")


def test_a_finished_source_is_ignored_after_a_drained_savepoint(tmp_path: Path) -> None:
    run = EpochRun(sums_of_two, tmp_path)
    assert run.run(clicks=[("a", 2)]).records("sums") == []
    assert run.run(drains=True).records("sums") == [("a", 3)]
    again = run.restarted()
    assert again.run(clicks=[("a", 4)]).records("sums") == []
    assert again.run(clicks=[("a", 25)]).records("sums") == [("a", 4)]
    run.close()
    again.close()
