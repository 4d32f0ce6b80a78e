from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.connectors.data_generator import LONGEST_WAIT_S, Pace


class Clock:
    """Seconds that pass only while a source waits or when the test advances them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def pace(self, per_second: float) -> Pace:
        return Pace(per_second, clock=lambda: self.now)

    def take(self, pace: Pace, most: int) -> int:
        """What a source reads that waits at most once if no record is due."""
        due = pace.take(most)
        if due:
            return due
        self.waits.append(pace.wait_s(most))
        self.now += self.waits[-1]
        return pace.take(most)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_frequent_records_are_batched(clock: Clock) -> None:
    pace = clock.pace(1000)
    assert 99 <= clock.take(pace, 5000) <= 100
    assert clock.waits == [pytest.approx(LONGEST_WAIT_S)]


def test_due_records_are_returned_without_waiting(clock: Clock) -> None:
    pace = clock.pace(10)
    clock.now += 2
    assert [clock.take(pace, 15), clock.take(pace, 15)] == [15, 5]
    assert clock.waits == []


def test_waits_for_rare_records_are_short(clock: Clock) -> None:
    pace = clock.pace(2)
    taken = [clock.take(pace, 100) for _ in range(5)]
    assert sum(taken[:4]) == 0
    assert max(clock.waits) <= LONGEST_WAIT_S + 1e-9
    assert sum(clock.take(pace, 100) for _ in range(2)) + taken[4] == 1


@given(per_second=st.floats(0.5, 5000), calls=st.lists(st.integers(1, 300), max_size=50))
def test_the_rate_is_never_exceeded_and_always_reached(per_second: float, calls: list[int]) -> None:
    clock = Clock()
    pace = clock.pace(per_second)
    taken = 0
    for most in calls:
        got = clock.take(pace, most)
        assert 0 <= got <= most
        taken += got
        assert taken <= (clock.now - 1000) * per_second + 1e-6
    clock.now += 10
    assert taken + clock.take(pace, 10**9) == pytest.approx((clock.now - 1000) * per_second, abs=1)
