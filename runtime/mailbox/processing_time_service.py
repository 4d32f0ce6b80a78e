"""Processing-time timers of an operator: callbacks at a time of the clock, which arrive as mail.

Each operator has its own service, with the executor of its priority. All services of a task share one TimerService,
which has the thread. A callback runs in the task's thread, between two default actions or while a downstream operator
waits, so it needs no lock.

Flink: ProcessingTimeService and ProcessingTimeServiceImpl. Differences:

- A timer that is cancelled after its mail was put does not fire. In Flink it does.
- The delay of `schedule_with_fixed_delay` begins at the end of the callback. In Flink it begins when the mail is put.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from opchain.runtime.mailbox.task_mailbox import MailboxClosedError

if TYPE_CHECKING:
    from opchain.runtime.mailbox.mailbox_executor import MailboxExecutor
    from opchain.runtime.mailbox.timer_service import ScheduledCall, TimerService

ProcessingTimeCallback = Callable[[int], object]
"""Gets the time of the timer, which is not later than the current time."""


class ProcessingTimeService:
    """The clock of an operator, and its timers, whose callbacks are its mail. Times and spans are in milliseconds.

    Args:
        timers: The clock, shared by the operators of a task.
        executor: Sends the mail, with the operator's priority.
    """

    def __init__(self, timers: TimerService, executor: MailboxExecutor) -> None:
        self._timers = timers
        self._executor = executor
        # The timer thread takes this lock before the mailbox's lock, and takes no other lock while it holds it. It is
        # re-entrant, because a manual clock calls back within call_at.
        self._lock = threading.RLock()
        self._is_quiesced = False

    def current_processing_time(self) -> int:
        """Milliseconds since the Unix epoch. Also available after `quiesce`."""
        return self._timers.current_processing_time()

    def register_timer(self, at_ms: int, callback: ProcessingTimeCallback) -> TimerHandle:
        """Calls back once when the clock reaches a time. Calls back soon if the time has passed."""
        return self._start(TimerHandle(self._cancel, callback), at_ms)

    def schedule_at_fixed_rate(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, period_ms: int
    ) -> TimerHandle:
        """Calls back after a delay and then every period. Several missed periods lead to one call.

        Raises:
            ValueError: The period is not positive.
        """
        _require_positive(period_ms)
        timer = TimerHandle(self._cancel, callback, rate_ms=period_ms)
        return self._start(timer, self.current_processing_time() + initial_delay_ms)

    def schedule_with_fixed_delay(
        self, callback: ProcessingTimeCallback, initial_delay_ms: int, period_ms: int
    ) -> TimerHandle:
        """Calls back after a delay, and again a period after each callback has returned.

        Raises:
            ValueError: The period is not positive.
        """
        _require_positive(period_ms)
        timer = TimerHandle(self._cancel, callback, delay_ms=period_ms)
        return self._start(timer, self.current_processing_time() + initial_delay_ms)

    def quiesce(self) -> None:
        """Stops all timers, also those that are registered later. Mail that was already put still runs.

        No timer is firing when this returns. Flink's method returns a future that completes at this moment.
        """
        with self._lock:
            self._is_quiesced = True

    def _start(self, timer: TimerHandle, at_ms: int) -> TimerHandle:
        with self._lock:
            self._arm(timer, at_ms)
        return timer

    def _arm(self, timer: TimerHandle, at_ms: int) -> None:
        if self._is_quiesced or timer.is_cancelled:
            return
        call = self._timers.call_at(at_ms, partial(self._deliver, timer, at_ms))
        # A call made at once has armed a repeated timer for its next time already.
        if call.is_waiting:
            timer.call = call

    def _deliver(self, timer: TimerHandle, at_ms: int) -> None:
        """Puts the mail. Runs in the thread of the timers."""
        with self._lock:
            if self._is_quiesced or timer.is_cancelled:
                return
            try:
                self._executor.execute(
                    partial(self._fire, timer, at_ms), f"processing-time timer at {at_ms}"
                )
            except MailboxClosedError:
                # The task ended before its timers were quiesced, so the timer need not fire.
                self._is_quiesced = True
            if timer.rate_ms is not None:
                self._arm(timer, at_ms + timer.rate_ms)

    def _fire(self, timer: TimerHandle, at_ms: int) -> None:
        """Runs the callback. Runs as mail, in the task's thread."""
        if timer.is_cancelled:
            return
        if timer.rate_ms is None and timer.delay_ms is None:
            timer.has_fired = True
        timer.callback(at_ms)
        if timer.delay_ms is not None:
            self._start(timer, self.current_processing_time() + timer.delay_ms)

    def _cancel(self, timer: TimerHandle) -> bool:
        with self._lock:
            if timer.is_cancelled or timer.has_fired:
                return False
            timer.is_cancelled = True
            if timer.call is not None:
                self._timers.cancel(timer.call)
            return True


class TimerHandle:
    """A registered timer: its callback, and the call that it waits for."""

    __slots__ = (
        "_cancel",
        "call",
        "callback",
        "delay_ms",
        "has_fired",
        "is_cancelled",
        "rate_ms",
    )

    def __init__(
        self,
        cancel: Callable[[TimerHandle], bool],
        callback: ProcessingTimeCallback,
        *,
        rate_ms: int | None = None,
        delay_ms: int | None = None,
    ) -> None:
        self._cancel = cancel
        self.callback = callback
        self.rate_ms = rate_ms
        self.delay_ms = delay_ms
        self.call: ScheduledCall | None = None
        self.has_fired = False  # for the last time
        self.is_cancelled = False

    def cancel(self) -> bool:
        """Cancels the timer. Returns False if it has fired for the last time, or was cancelled before.

        After a call in the task's thread, the callback does not run any more.
        """
        return self._cancel(self)


def _require_positive(period_ms: int) -> None:
    if period_ms <= 0:
        raise ValueError(f"the period of a timer is {period_ms} ms: it must be positive")
