"""Time-outs that are all equally long, kept with one timer."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.task.mailbox.processing_time_service import (
        ProcessingTimeService,
        TimerHandle,
    )

T = TypeVar("T")


class Deadlines(Generic[T]):
    """Calls back for each item that is not removed in time.

    Since all wait equally long, the first to come in is the first to be due, and only for that one a
    timer is set. Flink sets and cancels one per record; here the timers' thread, and its lock, sleep.

    Args:
        clock: Gives the time, and calls back in the task's thread.
        timeout_ms: How long each item may take.
        on_due: Called with an item that took too long, which is removed by then.
    """

    def __init__(
        self, clock: ProcessingTimeService, timeout_ms: int, on_due: Callable[[T], None]
    ) -> None:
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._on_due = on_due
        self._due_at_ms: OrderedDict[T, int] = OrderedDict()
        self._timer: TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due_at_ms)

    def add(self, item: T) -> None:
        """Starts an item's time."""
        at_ms = self._clock.current_processing_time() + self._timeout_ms
        self._due_at_ms[item] = at_ms
        if self._timer is None:
            self._timer = self._clock.register_timer(at_ms, self._look)

    def remove(self, item: T) -> None:
        """Stops an item's time."""
        self._due_at_ms.pop(item, None)

    def clear(self) -> None:
        """Forgets all items."""
        self._due_at_ms.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, now_ms: int) -> None:
        self._timer = None
        due = self._due_at_ms
        while due:
            item, at_ms = next(iter(due.items()))
            if at_ms > now_ms:
                # Perhaps that of an item that came long after the one for which the timer was set.
                self._timer = self._clock.register_timer(at_ms, self._look)
                return
            del due[item]
            self._on_due(item)
