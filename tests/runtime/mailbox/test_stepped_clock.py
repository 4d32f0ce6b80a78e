from __future__ import annotations

import threading

import pytest

from opchain.runtime.mailbox.timer_service import SteppedClock


def test_time_changes_only_when_it_is_advanced() -> None:
    clock = SteppedClock(7)
    assert (clock.current_processing_time(), clock.now_ns()) == (7, 7_000_000)
    clock.advance(3)
    assert (clock.current_processing_time(), clock.now_ns()) == (10, 10_000_000)
    clock.advance_to(10)
    assert clock.current_processing_time() == 10


@pytest.mark.parametrize("move", [lambda c: c.advance(-1), lambda c: c.advance_to(6)])
def test_time_cannot_go_back(move: object) -> None:
    clock = SteppedClock(7)
    with pytest.raises(ValueError, match="the clock shows 7 and cannot go back to 6"):
        move(clock)  # type: ignore[operator]
    assert clock.current_processing_time() == 7


def test_calls_are_made_in_order_and_each_at_its_own_time() -> None:
    clock = SteppedClock()
    made: list[tuple[str, int]] = []
    for name, at_ms in [("c", 9), ("a", 3), ("d", 9), ("late", 21), ("b", 5)]:
        clock.call_at(at_ms, lambda n=name: made.append((n, clock.current_processing_time())))  # type: ignore[misc]
    clock.advance_to(20)
    assert made == [("a", 3), ("b", 5), ("c", 9), ("d", 9)]
    assert clock.current_processing_time() == 20
    assert clock.waiting_calls == 1


def test_a_call_registered_by_a_call_is_made_in_the_same_advance() -> None:
    clock = SteppedClock()
    made: list[int] = []

    def again() -> None:
        made.append(clock.current_processing_time())
        clock.call_at(clock.current_processing_time() + 4, again)

    clock.call_at(1, again)
    clock.advance_to(10)
    assert made == [1, 5, 9]


def test_a_call_for_the_present_or_the_past_is_made_at_once() -> None:
    clock = SteppedClock(7)
    made: list[str] = []
    assert not clock.call_at(7, lambda: made.append("now")).is_waiting
    clock.call_at(6, lambda: made.append("past"))
    assert made == ["now", "past"]
    assert clock.waiting_calls == 0


def test_a_cancelled_call_is_not_made() -> None:
    clock = SteppedClock()
    made: list[str] = []
    clock.cancel(clock.call_at(1, lambda: made.append("cancelled")))
    clock.advance_to(1)
    assert made == []


def test_timers_registered_while_another_thread_advances_all_fire() -> None:
    clock = SteppedClock()
    made: list[int] = []
    both_ready = threading.Barrier(2)

    def advance() -> None:
        both_ready.wait(60)
        for _ in range(200):
            clock.advance(1)

    thread = threading.Thread(target=advance)
    thread.start()
    both_ready.wait(60)
    for at_ms in range(200):
        clock.call_at(at_ms, lambda at_ms=at_ms: made.append(at_ms))  # type: ignore[misc]
    thread.join(60)
    clock.advance_to(500)
    assert sorted(made) == list(range(200))


def test_next_call_time_is_that_of_the_first_call() -> None:
    clock = SteppedClock()
    assert clock.next_call_at() is None
    first, _ = clock.call_at(5, lambda: None), clock.call_at(9, lambda: None)
    assert clock.next_call_at() == 5
    clock.cancel(first)
    assert clock.next_call_at() == 9


def test_a_held_clock_makes_due_calls_in_the_order_of_their_times() -> None:
    clock = SteppedClock(7, is_held=True)
    called: list[tuple[str, int]] = []
    for name, at_ms in (("later", 6), ("first", 3), ("next", 8)):
        clock.call_at(
            at_ms, lambda name=name: called.append((name, clock.current_processing_time()))
        )  # type: ignore[misc]
    assert (called, clock.current_processing_time()) == ([], 7)
    clock.advance_to(7)
    assert called == [("first", 3), ("later", 6)]
    clock.call_at(7, lambda: called.append(("at once", 7)))
    clock.advance_to(8)
    assert called[2:] == [("at once", 7), ("next", 8)]
