# ruff: noqa: ARG002 - the base classes define the arguments
"""Time windows that only SQL has: windows that grow step by step, and windows that rows name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.sql import epoch_ms
from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.time import millis_of
from opchain.runtime.windows.time_windows import (
    EventTimeWindows,
    ProcessingTimeWindows,
    TimeWindows,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from opchain.runtime.windows.assigners import WindowAssigner
    from opchain.runtime.windows.time_windows import Span


class _CumulativeWindows(TimeWindows[Any]):
    def __init__(self, max_size: int, step: int, offset: int) -> None:
        if step <= 0 or max_size <= 0 or max_size % step:
            raise ValueError(
                f"{type(self).__name__}: the greatest size is {max_size} ms and the step {step} ms; "
                "the size must be a multiple of the step, and both positive"
            )
        self._max_size = max_size
        self._step = step
        self._offset = offset

    @classmethod
    def of(cls, max_size: Span, step: Span, offset: Span | None = None) -> Self:
        """Creates the assigner. A span is a Time, Duration or timedelta, or an int of milliseconds.

        Args:
            max_size: The size of the greatest windows, which do not overlap.
            step: How much longer each window is than the one before. The size is a multiple of it.
            offset: The offset of the window starts from multiples of the greatest size.

        Raises:
            ValueError: The size is not a multiple of the step, or not positive.
        """
        return cls(millis_of(max_size), millis_of(step), millis_of(offset or 0))

    def _windows_at(
        self, element: Any, time: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        past = (time - self._offset) % self._max_size
        start, shortest = time - past, past // self._step * self._step + self._step
        sizes = range(self._max_size, shortest - self._step, -self._step)
        return [TimeWindow(start, start + size) for size in sizes]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._max_size}, {self._step}, {self._offset})"


class CumulativeEventTimeWindows(_CumulativeWindows, EventTimeWindows[Any]):
    """Windows that start together and end one step after the other, in event time: CUMULATE of SQL. Not in PyFlink.

    >>> windows = CumulativeEventTimeWindows.of(60_000, 20_000)
    >>> windows.assign_windows("a record", 65_000, None)
    [TimeWindow(start=60000, end=120000), TimeWindow(start=60000, end=100000), TimeWindow(start=60000, end=80000)]
    """


class CumulativeProcessingTimeWindows(_CumulativeWindows, ProcessingTimeWindows[Any]):
    """Windows that start together and end one step after the other, in processing time. Not in PyFlink."""


class WindowsOfRows(EventTimeWindows[Any]):
    """The windows that rows name in two columns: their start and their end.

    Args:
        start: The place of the start.
        end: The place of the end.
    """

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self._end = end

    def _windows_at(self, element: Any, time: int, context: Any) -> list[TimeWindow]:
        return [TimeWindow(epoch_ms(element[self._start]), epoch_ms(element[self._end]))]
