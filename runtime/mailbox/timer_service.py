"""Where time comes from, and the thread that waits for it.

A timer service belongs to a task or a whole process and runs actions in a thread of its own, so the
actions only ever put mail. What operators get is the ProcessingTimeService built on it.

Flink: TimerService and SystemProcessingTimeService, on a ScheduledThreadPoolExecutor of one thread.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from opchain.runtime.mailbox.timer_queue import ScheduledCall, TimerQueue

if TYPE_CHECKING:
    from collections.abc import Callable


class TimerService(Protocol):
    """A clock that calls back. Actions are called one at a time, and must not block."""

    def current_processing_time(self) -> int:
        """Milliseconds since the Unix epoch."""

    def call_at(self, at_ms: int, action: Callable[[], None]) -> ScheduledCall:
        """Call an action once its time has come; in order of time, then of registration."""

    def cancel(self, call: ScheduledCall) -> None:
        """Do not make this call, if it has not been made."""


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
        """Make no more calls and end the thread; returns when a call being made has returned."""
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
                # A timer for the end of time is longer than a lock can wait.
                self._changed.wait(min(wait_ms / 1000, threading.TIMEOUT_MAX))
            return None
