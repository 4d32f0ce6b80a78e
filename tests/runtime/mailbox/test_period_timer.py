from __future__ import annotations

import pytest

from opchain.runtime.mailbox.timer_service import PeriodTimer
from opchain.runtime.testing.operator_harness import ManualClock


def test_a_timer_adds_up_its_periods_without_the_time_between_them() -> None:
    clock = ManualClock(5)
    timer = PeriodTimer(clock.now_ns)
    for spent_ms, between_ms in [(3, 100), (4, 1000)]:
        with timer:
            clock.advance(spent_ms)
        clock.advance(between_ms)
    assert timer.total_ns == 7_000_000


def test_an_open_period_counts_up_to_now() -> None:
    clock = ManualClock()
    timer = PeriodTimer(clock.now_ns)
    with timer:
        clock.advance(2)
        assert timer.total_ns == 2_000_000
        clock.advance(1)
    assert timer.total_ns == 3_000_000


def test_an_error_ends_the_period() -> None:
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


def test_a_period_cannot_start_twice() -> None:
    timer = PeriodTimer(ManualClock().now_ns)
    with timer, pytest.raises(AssertionError, match="already started"), timer:
        pass
