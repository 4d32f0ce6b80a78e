"""Measures how many events come per second."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.metrics.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class MeterValue:
    """All events, and events per second towards the end; each the sum over the subtasks."""

    count: int
    rate: float

    def as_plain(self) -> dict[str, Any]:
        """The numbers by name."""
        return {"count": self.count, "rate": self.rate}

    def merged(self, other: MeterValue) -> MeterValue:
        """Both together."""
        return MeterValue(self.count + other.count, self.rate + other.rate)


class Meter(Metric):
    """Events, and their rate over the last `time_span_in_seconds`. Flink: `Meter`, `MeterView`.

    Flink updates the rate every 5 seconds in the background; here it is worked out when asked for, over
    the span and what has passed of the current second. A younger meter averages over its own age.

    Args:
        time_span_in_seconds: The span of the rate.
        clock: Seconds from any origin, never going back.
    """

    __slots__ = ("_clock", "_count", "_marks", "_span", "_started")

    def __init__(
        self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if time_span_in_seconds < 1:
            raise ValueError(
                f"the time span of a meter is {time_span_in_seconds} seconds; it must be at least 1"
            )
        self._span = time_span_in_seconds
        self._clock = clock
        self._started = clock()
        self._count = 0
        # The whole second, and the count when it began; for seconds that had events.
        self._marks: deque[tuple[int, int]] = deque()

    def mark_event(self, value: int = 1) -> None:
        """Notes that so many events happened now."""
        second = int(self._clock() - self._started)
        marks = self._marks
        if not marks or marks[-1][0] != second:
            marks.append((second, self._count))
            while marks[0][0] < second - self._span:
                marks.popleft()
        self._count += value

    def get_count(self) -> int:
        """All events."""
        return self._count

    def get_rate(self) -> float:
        """Events per second."""
        age = self._clock() - self._started
        first = max(0, int(age) - self._span)
        before = next((count for second, count in self._marks if second >= first), self._count)
        return (self._count - before) / (age - first) if age > first else 0.0

    def snapshot(self) -> MeterValue:
        """Count and rate."""
        return MeterValue(self._count, self.get_rate())
