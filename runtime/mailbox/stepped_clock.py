"""Time that moves when somebody says so: by epochs in a streaming job, by hand in a test.

All calls are made in the thread that moves the clock, in order of time and then of registration.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from opchain.runtime.mailbox.timer_service import ScheduledCall, TimerQueue

if TYPE_CHECKING:
    from collections.abc import Callable


class SteppedClock:
    """A clock, and a timer service on it, for one or several threads.

    Calls are made in the thread that advances the clock, in order of time and then of registration,
    and each sees the clock at its own time. A call for now or earlier is made at once.

    Args:
        now_ms: Where it starts, in milliseconds since the Unix epoch.
        is_held: Whether calls that are due at once wait until the clock is first advanced, if only to
            the time that it shows: so that they come in the order of their times, whoever registers first.
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
        """The same in nanoseconds: the clock to give to a TaskMailbox."""
        return self._now_ms * 1_000_000

    @property
    def waiting_calls(self) -> int:
        """How many calls have neither been made nor cancelled."""
        return len(self._calls)

    def next_call_at(self) -> int | None:
        """When the first call that waits is due; None if none waits."""
        with self._lock:
            return self._calls.next_at_ms()

    def advance(self, by_ms: int) -> None:
        """Let time pass, and make the calls that come due.

        Raises:
            ValueError: The time is negative.
        """
        self.advance_to(self._now_ms + by_ms)

    def advance_to(self, now_ms: int) -> None:
        """Let time pass up to and including an instant, and make the calls that come due.

        Raises:
            ValueError: The instant has passed already.
        """
        if now_ms < self._now_ms:
            raise ValueError(f"the clock shows {self._now_ms} and cannot go back to {now_ms}")
        self._is_held = False
        while (call := self._take_due(now_ms)) is not None:
            call.action()
        self._now_ms = now_ms

    def call_at(self, at_ms: int, action: Callable[[], None]) -> ScheduledCall:
        """Make a call when the clock shows this time; at once, if it does already."""
        with self._lock:
            call = self._calls.add(at_ms, action)
            if at_ms > self._now_ms or self._is_held:
                return call
            self._calls.cancel(call)
        action()
        return call

    def cancel(self, call: ScheduledCall) -> None:
        """Do not make this call, if it has not been made."""
        with self._lock:
            self._calls.cancel(call)

    def _take_due(self, until_ms: int) -> ScheduledCall | None:
        with self._lock:
            at_ms = self._calls.next_at_ms()
            if at_ms is None or at_ms > until_ms:
                return None
            self._now_ms = at_ms
            return self._calls.take_next()
