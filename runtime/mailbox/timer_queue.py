"""Calls waiting for their time: the earliest first, and among equals the one registered first.

It knows no clock and no thread. The system's timers and the manual clock of the tests are both built
on it, which is why they fire in the same order.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALLEST_HEAP_TO_SWEEP = 64


@dataclass(slots=True, order=True)
class ScheduledCall:
    """One action and its time; waiting until the queue gives it out or it is cancelled."""

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
        """Let an action wait for its time, in milliseconds."""
        call = ScheduledCall(at_ms, next(self._sequence), action)
        heapq.heappush(self._heap, call)
        self._waiting_count += 1
        return call

    def next_at_ms(self) -> int | None:
        """When the next call is due; None if none is waiting."""
        heap = self._heap
        while heap and not heap[0].is_waiting:
            heapq.heappop(heap)
        return heap[0].at_ms if heap else None

    def take_next(self) -> ScheduledCall:
        """Remove the next call. Only after `next_at_ms` has told that there is one."""
        call = heapq.heappop(self._heap)
        assert call.is_waiting
        call.is_waiting = False
        self._waiting_count -= 1
        return call

    def cancel(self, call: ScheduledCall) -> None:
        """Forget a call; does nothing if it is no longer waiting."""
        if not call.is_waiting:
            return
        call.is_waiting = False
        self._waiting_count -= 1
        # Cancelled calls leave the heap when their time comes. Timers that are always cancelled long
        # before it, such as timeouts, would fill it: sweep once they are the majority.
        if len(self._heap) > max(_SMALLEST_HEAP_TO_SWEEP, 2 * self._waiting_count):
            self._heap = [call for call in self._heap if call.is_waiting]
            heapq.heapify(self._heap)
