from __future__ import annotations

import pytest

from opchain.runtime.mailbox.timer_service import PeriodTimer
from opchain.runtime.testing.operator_harness import ManualClock


def test_adds_up_periods_and_nothing_between_them() -> None:
    clock = ManualClock(5)
    timer = PeriodTimer(clock.now_ns)
    for spent_ms, between_ms in [(3, 100), (4, 1000)]:
        with timer:
            clock.advance(spent_ms)
        clock.advance(between_ms)
    assert timer.total_ns == 7_000_000


def test_a_period_that_has_not_ended_counts_up_to_now() -> None:
    clock = ManualClock()
    timer = PeriodTimer(clock.now_ns)
    with timer:
        clock.advance(2)
        assert timer.total_ns == 2_000_000
        clock.advance(1)
    assert timer.total_ns == 3_000_000


def test_a_period_ends_with_an_error_too() -> None:
    clock = ManualClock()
    timer = PeriodTimer(clock.now_ns)

    def fail() -> None:
        with timer:
            clock.advance(1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    clock.advance(5)
    assert timer.total_ns == 1_000_000


def test_a_period_does_not_start_twice() -> None:
    timer = PeriodTimer(ManualClock().now_ns)
    with timer, pytest.raises(AssertionError, match="already started"), timer:
        pass
