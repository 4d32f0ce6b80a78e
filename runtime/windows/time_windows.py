# ruff: noqa: ARG002 - the arguments are the assigner contract's
"""Tumbling and sliding windows of a fixed size."""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.state_descriptors import ListStateDescriptor
from opchain.runtime.functions.window import TimeWindow, TimeWindowSerializer
from opchain.runtime.time import MIN_LONG_VALUE, Duration, Time, millis_of
from opchain.runtime.types.types import Types
from opchain.runtime.windows.assigners import WindowAssigner
from opchain.runtime.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger

if TYPE_CHECKING:
    from datetime import timedelta

    Span: TypeAlias = Time | Duration | timedelta | int


class WindowStagger(Enum):
    """How far the tumbling windows of one subtask start from those of the others. Flink: WindowStagger.

    The offset of a subtask is chosen at its first record, and is part of the job's checkpoints. Flink chooses it again
    after each restore.
    """

    ALIGNED = 0
    """All subtasks' windows start at the same times: the default."""
    RANDOM = 1
    """A subtask's windows start anywhere within the size. The offset follows from the operator's name and the subtask's
    number, so that a job gives the same results each time."""
    NATURAL = 2
    """A subtask's windows start at the time of day of its first record, by the machine's clock."""


class _TumblingWindows(WindowAssigner[Any, TimeWindow]):
    def __init__(
        self, size: int, offset: int, stagger: WindowStagger = WindowStagger.ALIGNED
    ) -> None:
        if abs(offset) >= size:
            raise ValueError(
                f"{type(self).__name__}: size is {size} ms and offset {offset} ms; "
                "the offset must be smaller than the size, and the size positive"
            )
        if not isinstance(stagger, WindowStagger):
            raise TypeError(
                f"{type(self).__name__}: window_stagger is {short_repr(stagger)}; use a WindowStagger"
            )
        self._size = size
        self._offset = offset
        self.stagger = stagger
        self._stagger_ms = 0 if stagger is WindowStagger.ALIGNED else None

    @property
    def pace(self) -> tuple[int, int, int]:
        """Size, slide (here the size too) and offset in milliseconds."""
        return self._size, self._size, self._offset

    def _windows_at(
        self, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        stagger_ms = self._stagger_ms
        if stagger_ms is None:
            stagger_ms = self._stagger_ms = self._choose_stagger(context)
        start = timestamp - (timestamp - self._offset - stagger_ms) % self._size
        return [TimeWindow(start, start + self._size)]

    def _choose_stagger(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """The subtask's offset: from its state, else a new one."""
        chosen = context.get_operator_state_store().get_list_state(_STAGGER)
        for offset_ms in chosen.get():
            return offset_ms
        if self.stagger is WindowStagger.NATURAL:
            offset_ms = context.get_current_processing_time() % self._size
        else:
            task = context.get_runtime_context()
            seed = f"{task.get_task_name()}|{task.get_index_of_this_subtask()}".encode()
            offset_ms = int.from_bytes(blake2b(seed, digest_size=8).digest(), "big") % self._size
        chosen.add(offset_ms)
        return offset_ms

    def get_window_serializer(self) -> TimeWindowSerializer:
        """Flink's."""
        return TimeWindowSerializer()

    def __repr__(self) -> str:
        stagger = "" if self.stagger is WindowStagger.ALIGNED else f", {self.stagger.name}"
        return f"{type(self).__name__}({self._size}, {self._offset}{stagger})"

    def __str__(self) -> str:
        # As plans show it: Flink's toString leaves out the offset.
        return f"{type(self).__name__}({self._size})"


_STAGGER = ListStateDescriptor("opchain-window-stagger", Types.LONG())


class TumblingEventTimeWindows(_TumblingWindows):
    """Windows of one size without gaps, by the records' timestamps."""

    @staticmethod
    def of(
        size: Span,
        offset: Span | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> TumblingEventTimeWindows:
        """The assigner. Spans may be a Time, Duration, timedelta, or an int of milliseconds.

        >>> TumblingEventTimeWindows.of(3_600_000, offset=-900_000)
        TumblingEventTimeWindows(3600000, -900000)

        Args:
            size: How long a window is.
            offset: How far windows start from the full multiple: -8 hours for days in China.
            window_stagger: Whether the windows of different subtasks start at different times. Java only in Flink.

        Raises:
            ValueError: the offset is not smaller than the size, or the size not positive.
        """
        return TumblingEventTimeWindows(millis_of(size), millis_of(offset or 0), window_stagger)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """The one window that holds the timestamp."""
        check_timestamp(element, timestamp, self)
        return self._windows_at(timestamp, context)

    def get_default_trigger(self, env: Any = None) -> EventTimeTrigger:
        """Fires at the end of the window."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """It is."""
        return True


class TumblingProcessingTimeWindows(_TumblingWindows):
    """Windows of one size without gaps, by the machine's time when a record comes."""

    @staticmethod
    def of(
        size: Span,
        offset: Span | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> TumblingProcessingTimeWindows:
        """The assigner; see TumblingEventTimeWindows.of."""
        return TumblingProcessingTimeWindows(
            millis_of(size), millis_of(offset or 0), window_stagger
        )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """The one window that holds the machine's time."""
        return self._windows_at(context.get_current_processing_time(), context)

    def get_default_trigger(self, env: Any = None) -> ProcessingTimeTrigger:
        """Fires at the end of the window."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """It is not."""
        return False


class _SlidingWindows(WindowAssigner[Any, TimeWindow]):
    def __init__(self, size: int, slide: int, offset: int) -> None:
        if abs(offset) >= slide or size <= 0:
            raise ValueError(
                f"{type(self).__name__}: size is {size} ms, slide {slide} ms and offset {offset} ms; "
                "the offset must be smaller than the slide, and size and slide positive"
            )
        self._size = size
        self._slide = slide
        self._offset = offset

    @property
    def pace(self) -> tuple[int, int, int]:
        """Size, slide and offset in milliseconds."""
        return self._size, self._slide, self._offset

    def _windows_at(self, timestamp: int) -> list[TimeWindow]:
        # The latest window first, as Flink lists them.
        last_start = timestamp - (timestamp - self._offset) % self._slide
        return [
            TimeWindow(start, start + self._size)
            for start in range(last_start, timestamp - self._size, -self._slide)
        ]

    def get_window_serializer(self) -> TimeWindowSerializer:
        """Flink's."""
        return TimeWindowSerializer()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._size}, {self._slide}, {self._offset})"

    def __str__(self) -> str:
        # As plans show it: Flink's toString leaves out the offset.
        return f"{type(self).__name__}({self._size}, {self._slide})"


class SlidingEventTimeWindows(_SlidingWindows):
    """Windows of one size that start every so often, by the records' timestamps.

    They overlap where the slide is smaller than the size; where it is larger, records between two
    windows fall into none.
    """

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingEventTimeWindows:
        """The assigner. Spans may be a Time, Duration, timedelta, or an int of milliseconds.

        Args:
            size: How long a window is.
            slide: How far apart windows start.
            offset: How far windows start from the full multiple of the slide.

        Raises:
            ValueError: the offset is not smaller than the slide, or a length not positive.
        """
        return SlidingEventTimeWindows(millis_of(size), millis_of(slide), millis_of(offset or 0))

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """The windows that hold the timestamp, the latest one first."""
        check_timestamp(element, timestamp, self)
        return self._windows_at(timestamp)

    def get_default_trigger(self, env: Any = None) -> EventTimeTrigger:
        """Fires at the end of the window."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """It is."""
        return True


class SlidingProcessingTimeWindows(_SlidingWindows):
    """Windows of one size that start every so often, by the machine's time when a record comes."""

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingProcessingTimeWindows:
        """The assigner; see SlidingEventTimeWindows.of."""
        return SlidingProcessingTimeWindows(
            millis_of(size), millis_of(slide), millis_of(offset or 0)
        )

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """The windows that hold the machine's time, the latest one first."""
        return self._windows_at(context.get_current_processing_time())

    def get_default_trigger(self, env: Any = None) -> ProcessingTimeTrigger:
        """Fires at the end of the window."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """It is not."""
        return False


def check_timestamp(element: Any, timestamp: int, assigner: WindowAssigner[Any, Any]) -> None:
    """Refuses a record without event time.

    Raises:
        ValueError: the timestamp is -2**63, the mark of a record that has none.
    """
    if timestamp <= MIN_LONG_VALUE:
        raise ValueError(
            f"{type(assigner).__name__} needs event time, and record {short_repr(element)} has no "
            "timestamp; call assign_timestamps_and_watermarks() before the window, or use the "
            "processing-time windows"
        )
