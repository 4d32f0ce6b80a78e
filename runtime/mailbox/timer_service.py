"""Sources of time, and the thread that waits for timers.

A timer service belongs to a task or a process. It runs actions in a thread of its own, so an action should only put
mail. Operators use a ProcessingTimeService, which is built on a timer service. The system's timers and the ManualClock
of tests share TimerQueue, so timers fire in the same order in both.

The time of a SteppedClock is set from outside: by each epoch of a streaming job, or by a test.

Flink: TimerService and SystemProcessingTimeService, on a ScheduledThreadPoolExecutor of one thread; PeriodTimer, which
TimerGauge implements.
"""

from __future__ import annotations

import heapq
import threading
import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALLEST_HEAP_TO_SWEEP = 64


@dataclass(slots=True, order=True)
class ScheduledCall:
    """An action and its time. It waits until the queue returns it, or until it is cancelled."""

    at_ms: int
    sequence: int
    action: Callable[[], None] = field(compare=False)
    is_waiting: bool = field(default=True, compare=False)


class TimerQueue:
    """A heap of calls. Not safe for several threads: its owner holds a lock."""

    __slots__ = ("_heap", "_sequence", "_waiting_count")

    def __init__(self) -> None:
        self._heap: list[ScheduledCall] = []
        self._sequence = count()
        self._waiting_count = 0

    def __len__(self) -> int:
        return self._waiting_count

    def add(self, at_ms: int, action: Callable[[], None]) -> ScheduledCall:
        """Adds an action with its time in milliseconds."""
        call = ScheduledCall(at_ms, next(self._sequence), action)
        heapq.heappush(self._heap, call)
        self._waiting_count += 1
        return call

    def next_at_ms(self) -> int | None:
        """The time of the next call; None if there is none."""
        heap = self._heap
        while heap and not heap[0].is_waiting:
            heapq.heappop(heap)
        return heap[0].at_ms if heap else None

    def take_next(self) -> ScheduledCall:
        """Removes and returns the next call. Call it only if `next_at_ms` is not None."""
        call = heapq.heappop(self._heap)
        assert call.is_waiting
        call.is_waiting = False
        self._waiting_count -= 1
        return call

    def cancel(self, call: ScheduledCall) -> None:
        """Cancels a call. Has no effect if it is no longer waiting."""
        if not call.is_waiting:
            return
        call.is_waiting = False
        self._waiting_count -= 1
        # Cancelled calls leave the heap at their time. Timeouts are usually cancelled long before, and would fill the
        # heap. So they are removed when they are the majority.
        if len(self._heap) > max(_SMALLEST_HEAP_TO_SWEEP, 2 * self._waiting_count):
            self._heap = [call for call in self._heap if call.is_waiting]
            heapq.heapify(self._heap)


class TimerService(Protocol):
    """A clock that calls back. Actions are called one at a time, and must not block."""

    def current_processing_time(self) -> int:
        """Milliseconds since the Unix epoch."""

    def call_at(self, at_ms: int, action: Callable[[], None]) -> ScheduledCall:
        """Calls an action at its time. Actions are called in the order of time, and then of registration."""

    def cancel(self, call: ScheduledCall) -> None:
        """Cancels a call that was not made yet."""


def wall_clock_ms() -> int:
    """Milliseconds since the Unix epoch, by the system's clock."""
    return time.time_ns() // 1_000_000


class SystemTimerService:
    """Calls back by the system's clock, from one daemon thread that starts with the first call.

    A call is made once the clock has left its millisecond: when a timer for `t` fires, no record can
    get the time stamp `t` any more (Flink: ProcessingTimeServiceUtil.getProcessingTimeDelay).

    Args:
        clock_ms: The clock.
        thread_name: What a thread dump shows.
    """

    __slots__ = ("_calls", "_changed", "_clock_ms", "_is_shut_down", "_thread", "_thread_name")

    def __init__(
        self,
        clock_ms: Callable[[], int] = wall_clock_ms,
        thread_name: str = "processing-time timers",
    ) -> None:
        self._clock_ms = clock_ms
        self._thread_name = thread_name
        self._thread: threading.Thread | None = None
        self._calls = TimerQueue()
        self._changed = threading.Condition(threading.Lock())
        self._is_shut_down = False

    def current_processing_time(self) -> int:
        """Milliseconds since the Unix epoch; also after `shutdown`."""
        return self._clock_ms()

    def call_at(self, at_ms: int, action: Callable[[], None]) -> ScheduledCall:
        """See TimerService; a time that has passed is called at once, in the timer thread too.

        After `shutdown` the call is never made. Flink raises then; but a repeated timer may register
        itself again while its task ends.
        """
        with self._changed:
            call = self._calls.add(at_ms, action)
            if self._is_shut_down:
                self._calls.cancel(call)
            elif self._thread is None:
                self._thread = threading.Thread(
                    target=self._call_when_due, name=self._thread_name, daemon=True
                )
                self._thread.start()
            else:
                self._changed.notify()
            return call

    def cancel(self, call: ScheduledCall) -> None:
        """See TimerService."""
        with self._changed:
            self._calls.cancel(call)

    def shutdown(self) -> None:
        """Makes no more calls, and ends the thread. Waits for a call that is running."""
        with self._changed:
            self._is_shut_down = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _call_when_due(self) -> None:
        while (call := self._wait_for_due_call()) is not None:
            call.action()

    def _wait_for_due_call(self) -> ScheduledCall | None:
        with self._changed:
            while not self._is_shut_down:
                at_ms = self._calls.next_at_ms()
                if at_ms is None:
                    self._changed.wait()
                    continue
                wait_ms = at_ms + 1 - self._clock_ms()
                if wait_ms <= 0:
                    return self._calls.take_next()
                # A lock cannot wait until the largest timestamp.
                self._changed.wait(min(wait_ms / 1000, threading.TIMEOUT_MAX))
            return None


class PeriodTimer:
    """A stopwatch as a context manager. It can be used repeatedly, but not nested.

    Args:
        clock_ns: Nanoseconds from any origin. They never decrease.

    >>> from itertools import count
    >>> timer = PeriodTimer(count(step=5).__next__)
    >>> with timer:
    ...     pass
    >>> timer.total_ns
    5
    """

    __slots__ = ("_clock_ns", "_ended_ns", "_started_at_ns")

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._ended_ns = 0
        self._started_at_ns: int | None = None

    @property
    def total_ns(self) -> int:
        """The time of all periods so far, including a period that has not ended."""
        started_at_ns = self._started_at_ns
        if started_at_ns is None:
            return self._ended_ns
        return self._ended_ns + self._clock_ns() - started_at_ns

    def __enter__(self) -> None:
        assert self._started_at_ns is None, "the period has already started"
        self._started_at_ns = self._clock_ns()

    def __exit__(self, *_: object) -> None:
        self._ended_ns = self.total_ns
        self._started_at_ns = None


class SteppedClock:
    """A clock, and a timer service on it, for one or several threads.

    The thread that advances the clock makes the calls, in the order of time and then of registration. During a call the
    clock shows the time of the call. A call for now or earlier is made at once.

    Args:
        now_ms: The first time, in milliseconds since the Unix epoch.
        is_held: Whether calls that are due at once wait until the clock is first advanced. Then they are made in the
            order of their times, whatever the order of registration.
    """

    def __init__(self, now_ms: int = 0, *, is_held: bool = False) -> None:
        self._now_ms = now_ms
        self._is_held = is_held
        self._calls = TimerQueue()
        self._lock = threading.Lock()

    def current_processing_time(self) -> int:
        """Milliseconds since the Unix epoch."""
        return self._now_ms

    def now_ns(self) -> int:
        """The time in nanoseconds, for a TaskMailbox."""
        return self._now_ms * 1_000_000

    @property
    def waiting_calls(self) -> int:
        """The number of calls that were neither made nor cancelled."""
        return len(self._calls)

    def next_call_at(self) -> int | None:
        """The time of the next call; None if there is none."""
        with self._lock:
            return self._calls.next_at_ms()

    def advance(self, by_ms: int) -> None:
        """Advances the clock by a span, and makes the calls that become due.

        Raises:
            ValueError: The time is negative.
        """
        self.advance_to(self._now_ms + by_ms)

    def advance_to(self, now_ms: int) -> None:
        """Advances the clock to a time, and makes the calls that become due.

        Raises:
            ValueError: The clock already shows a later time.
        """
        if now_ms < self._now_ms:
            raise ValueError(f"the clock shows {self._now_ms} and cannot go back to {now_ms}")
        self._is_held = False
        while (call := self._take_due(now_ms)) is not None:
            call.action()
        self._now_ms = now_ms

    def call_at(self, at_ms: int, action: Callable[[], None]) -> ScheduledCall:
        """Calls an action when the clock shows this time; at once if the time has passed."""
        with self._lock:
            call = self._calls.add(at_ms, action)
            if at_ms > self._now_ms or self._is_held:
                return call
            self._calls.cancel(call)
        action()
        return call

    def cancel(self, call: ScheduledCall) -> None:
        """Cancels a call that was not made yet."""
        with self._lock:
            self._calls.cancel(call)

    def _take_due(self, until_ms: int) -> ScheduledCall | None:
        with self._lock:
            at_ms = self._calls.next_at_ms()
            if at_ms is None or at_ms > until_ms:
                return None
            self._now_ms = at_ms
            return self._calls.take_next()
