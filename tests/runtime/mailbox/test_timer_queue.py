from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.mailbox.timer_service import ScheduledCall, TimerQueue


def nothing() -> None:
    pass


def take_all(queue: TimerQueue) -> list[ScheduledCall]:
    taken = []
    while queue.next_at_ms() is not None:
        taken.append(queue.take_next())
    return taken


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=300))
def test_timers_are_taken_in_the_order_of_time_and_registration(
    timers: list[tuple[int, bool]],
) -> None:
    queue = TimerQueue()
    calls = [queue.add(at_ms, nothing) for at_ms, _ in timers]
    kept = []
    for call, (_, is_cancelled) in zip(calls, timers, strict=True):
        if is_cancelled:
            queue.cancel(call)
        else:
            kept.append(call)

    assert len(queue) == len(kept)
    # sorted() is stable: among equals the order of registration
    assert [id(c) for c in take_all(queue)] == [id(c) for c in sorted(kept, key=lambda c: c.at_ms)]
    assert len(queue) == 0


def test_a_timer_that_was_taken_cannot_be_cancelled() -> None:
    queue = TimerQueue()
    queue.add(1, nothing)
    call = queue.take_next()
    queue.add(2, nothing)
    queue.cancel(call)
    assert len(queue) == 1


def test_cancelling_a_timer_twice_counts_once() -> None:
    queue = TimerQueue()
    call = queue.add(1, nothing)
    queue.add(2, nothing)
    queue.cancel(call)
    queue.cancel(call)
    assert len(queue) == 1


def test_cancelled_timers_do_not_accumulate() -> None:
    queue = TimerQueue()
    kept = queue.add(10**9, nothing)
    for number in range(10_000):
        queue.cancel(queue.add(10**6 + number, nothing))
    assert len(queue._heap) < 100
    assert take_all(queue) == [kept]


def test_the_order_is_kept_when_cancelled_timers_are_swept() -> None:
    queue = TimerQueue()
    calls = [queue.add(at_ms * 7919 % 1009, nothing) for at_ms in range(1000)]
    for number, call in enumerate(calls):
        if number % 4:
            queue.cancel(call)
    assert len(queue._heap) < 1000  # the queue was swept
    assert [call.at_ms for call in take_all(queue)] == sorted(call.at_ms for call in calls[::4])
