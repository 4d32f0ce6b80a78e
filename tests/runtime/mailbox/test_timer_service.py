from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.mailbox.timer_service import SystemTimerService, wall_clock_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import OtherThreads

THE_END_OF_TIME = 2**63 - 1


class Timers:
    """A system timer service on a clock set by hand; its calls are put into a queue."""

    def __init__(self) -> None:
        self.now_ms = 100
        self.service = SystemTimerService(lambda: self.now_ms, thread_name="timers under test")
        self.called: SimpleQueue[str] = SimpleQueue()

    def call(self, name: str, at_ms: int) -> None:
        self.service.call_at(at_ms, lambda: self.called.put(name))

    def next_called(self) -> str:
        return self.called.get(timeout=60)


@pytest.fixture
def timers() -> Iterator[Timers]:
    timers = Timers()
    yield timers
    timers.service.shutdown()


def test_calls_are_made_in_the_order_of_time_in_a_timer_thread(timers: Timers) -> None:
    names: list[str] = []
    first_is_running, may_go_on = threading.Event(), threading.Event()

    def hold_up() -> None:
        names.append(threading.current_thread().name)
        first_is_running.set()
        assert may_go_on.wait(60)

    timers.service.call_at(0, hold_up)
    assert first_is_running.wait(60)
    for name, at_ms in [("c", 50), ("a", 10), ("d", 50), ("b", 20)]:
        timers.call(name, at_ms)
    may_go_on.set()

    assert [timers.next_called() for _ in range(4)] == ["a", "b", "c", "d"]
    assert names == ["timers under test"]


def test_a_call_is_made_once_the_millisecond_of_its_timer_is_over(timers: Timers) -> None:
    timers.call("now", 100)
    timers.call("past", 99)
    assert timers.next_called() == "past"
    assert timers.called.empty()

    timers.now_ms = 101
    timers.call("wake up and look at the clock", 100)
    assert timers.next_called() == "now"
    assert timers.next_called() == "wake up and look at the clock"


def test_an_earlier_timer_overtakes_the_one_that_is_waited_for(timers: Timers) -> None:
    timers.call("never", THE_END_OF_TIME)  # longer than a lock can wait
    timers.call("at once", 0)
    assert timers.next_called() == "at once"
    assert timers.called.empty()


def test_a_cancelled_call_is_not_made(timers: Timers) -> None:
    call = timers.service.call_at(200, lambda: timers.called.put("cancelled"))
    timers.service.cancel(call)
    timers.now_ms = 1000
    timers.call("later", 300)
    assert timers.next_called() == "later"
    assert timers.called.empty()


def test_the_real_clock_makes_a_call() -> None:
    service = SystemTimerService()
    called_at_ms: SimpleQueue[int] = SimpleQueue()
    at_ms = wall_clock_ms() + 5
    assert service.current_processing_time() <= at_ms
    service.call_at(at_ms, lambda: called_at_ms.put(wall_clock_ms()))
    assert called_at_ms.get(timeout=60) > at_ms
    service.shutdown()


def test_without_timers_there_is_no_thread() -> None:
    service = SystemTimerService(thread_name="timers without timers")
    assert "timers without timers" not in {thread.name for thread in threading.enumerate()}
    service.shutdown()


def test_shutdown_ends_the_thread_and_makes_no_more_calls(timers: Timers) -> None:
    timers.call("a", 0)
    timers.call("never", 1000)
    assert timers.next_called() == "a"
    thread = timers.service._thread
    assert thread is not None
    assert thread.daemon

    timers.service.shutdown()
    assert not thread.is_alive()
    timers.now_ms = 2000
    assert not timers.service.call_at(3000, thread.start).is_waiting
    assert timers.called.empty()
    assert timers.service.current_processing_time() == 2000
    timers.service.shutdown()  # again


def test_shutdown_waits_for_the_call_in_progress(
    timers: Timers, other_threads: OtherThreads
) -> None:
    is_running, may_go_on = threading.Event(), threading.Event()
    trace: list[str] = []

    def slow() -> None:
        is_running.set()
        assert may_go_on.wait(60)
        trace.append("called")

    def shut_down() -> None:
        timers.service.shutdown()
        trace.append("shut down")

    timers.service.call_at(0, slow)
    assert is_running.wait(60)
    shutdown = other_threads.start(shut_down)
    may_go_on.set()
    shutdown.result(60)
    assert trace == ["called", "shut down"]


def test_a_call_may_shut_the_service_down(timers: Timers) -> None:
    timers.service.call_at(0, timers.service.shutdown)
    thread = timers.service._thread
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()
