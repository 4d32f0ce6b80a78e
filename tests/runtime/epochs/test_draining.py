"""The last epoch of a job that is stopped and drained: event time ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from forms import seen

from opchain.common import Time, WatermarkStrategy
from opchain.datastream.window import TumblingEventTimeWindows

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
    # A savepoint of that holds no window any more.
    assert run.restarted().run(clicks=[("a", 1)]).records("sums") == []
    run.close()
