"""Latency markers in epochs: they use the clock of the machine, although epochs are reproducible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epoch_runs import EpochRun, given
from forms import seen

from opchain.common import Duration, WatermarkStrategy
from opchain.runtime.metrics.histogram import HistogramValue

if TYPE_CHECKING:
    from pathlib import Path

NOON_MS = 1_763_812_800_000


def marked(env: Any) -> None:
    env.get_config().set_latency_tracking_interval(1)
    seen(given(env, "numbers").map(int).name("to int").rebalance().map(abs).name("abs"), "numbers")


def test_markers_are_timed_within_their_epoch_whatever_its_processing_time(tmp_path: Path) -> None:
    run = EpochRun(marked, tmp_path)
    counts = []
    for number in range(3):
        ran = run.run(NOON_MS + 86_400_000 * number, numbers=["1", "2"])
        assert ran.records("numbers") == [1, 2]
        assert run.next_timer_ms(ran) is None
        first, second = ran.outcome.metrics.vertices
        assert first.operators[0].latencies == {}
        for operator in (*first.operators[1:], *second.operators):
            latency = operator.latencies.get(first.operators[0].operator_id, HistogramValue())
            assert 0 <= (latency.minimum or 0) <= (latency.maximum or 0) < 60_000
            counts.append(latency.count)
    run.close()
    assert all(counts[:2])  # the first marker is sent at once
    assert (
        max(counts) < 100
    )  # and then one per millisecond of the machine's clock, counted in its epoch


def quiet(env: Any) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(5))
    seen(given(env, "numbers", strategy), "numbers")


def test_a_timer_set_in_open_counts_from_the_first_epoch(tmp_path: Path) -> None:
    run = EpochRun(quiet, tmp_path)
    assert run.next_timer_ms(run.run(NOON_MS, numbers=[])) == NOON_MS + 5_001
    run.close()
