from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.metrics.metric_types import Meter, MeterValue


class Clock:
    def __init__(self, now: float = 1000.25) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_mark_event_counts_all_events() -> None:
    meter = Meter()
    meter.mark_event()
    meter.mark_event(9)
    assert meter.get_count() == 10


def test_a_new_meter_averages_over_its_age() -> None:
    clock = Clock()
    meter = Meter(60, clock)
    meter.mark_event(3)
    assert meter.get_rate() == 0.0  # its age is 0
    clock.now += 0.5
    assert meter.get_rate() == 6.0
    clock.now += 9.5
    meter.mark_event(7)
    assert meter.get_rate() == 1.0


def test_an_old_meter_averages_over_its_span() -> None:
    clock = Clock()
    meter = Meter(10, clock)
    for _ in range(100):
        meter.mark_event(5)
        clock.now += 1
    assert meter.get_rate() == 5.0
    clock.now += 5
    assert meter.get_rate() == 2.5  # half of the last ten seconds had events
    clock.now += 5
    assert meter.get_rate() == 0.0
    assert meter.snapshot() == MeterValue(500, 0.0)


def test_memory_is_bounded_by_the_span() -> None:
    clock = Clock()
    meter = Meter(3, clock)
    for _ in range(1000):
        meter.mark_event()
        clock.now += 0.5
    assert len(meter._marks) <= 3 + 1


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=40),
    st.integers(0, 20),
)
def test_the_rate_is_that_of_the_whole_seconds_in_the_span(
    span: int, events: list[tuple[int, int]], rest: int
) -> None:
    clock = Clock(0.0)
    meter = Meter(span, clock)
    seen = []
    for pause, count in events:
        clock.now += pause / 4
        meter.mark_event(count)
        seen.append((int(clock.now), count))
    clock.now += rest / 4
    first = max(0, int(clock.now) - span)
    expected = sum(count for second, count in seen if second >= first)
    length = clock.now - first
    assert meter.get_rate() == (expected / length if length else 0.0)


def test_rates_of_subtasks_are_added() -> None:
    merged = MeterValue(10, 2.5).merged(MeterValue(4, 0.5))
    assert merged == MeterValue(14, 3.0)
    assert merged.as_plain() == {"count": 14, "rate": 3.0}
    assert pickle.loads(pickle.dumps(merged)) == merged


@pytest.mark.parametrize("span", [0, -1])
def test_a_span_must_be_positive(span: int) -> None:
    with pytest.raises(ValueError, match=f"is {span} seconds; it must be at least 1"):
        Meter(span)
