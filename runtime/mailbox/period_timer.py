"""Adds up the time spent in one kind of period.

Flink: PeriodTimer, implemented by TimerGauge. Here the total is kept; the rate per second is the
business of whoever reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class PeriodTimer:
    """A stopwatch to enter as a context, again and again but never twice at once.

    Args:
        clock_ns: Nanoseconds from any origin, never going back.

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
        """Time in all periods so far, up to now for one that has not ended."""
        started_at_ns = self._started_at_ns
        if started_at_ns is None:
            return self._ended_ns
        return self._ended_ns + self._clock_ns() - started_at_ns

    def __enter__(self) -> None:
        assert self._started_at_ns is None, "the period has already started"
        self._started_at_ns = self._clock_ns()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended_ns = self.total_ns
        self._started_at_ns = None
