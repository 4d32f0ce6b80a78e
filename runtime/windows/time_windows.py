# ruff: noqa: ARG002 - the base classes define the arguments
"""Time windows: tumbling and sliding windows of a fixed size, and session windows, which merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.state_descriptors import ListStateDescriptor
from opchain.runtime.functions.window import TimeWindow, TimeWindowSerializer
from opchain.runtime.time import MIN_LONG_VALUE, Duration, Time, millis_of
from opchain.runtime.types.type_variables import T, T_contra
from opchain.runtime.types.types import Types
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from typing_extensions import Self

    Span: TypeAlias = Time | Duration | timedelta | int


class TimeWindows(WindowAssigner[T_contra, TimeWindow]):
    """Windows with a start and an end."""

    @abstractmethod
    def _windows_at(
        self, element: T_contra, time: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """The windows of a record at a time of the assigner's clock. As in Flink, the latest one comes first."""

    def get_window_serializer(self) -> TimeWindowSerializer:
        """Flink's serializer of time windows."""
        return TimeWindowSerializer()


class EventTimeWindows(TimeWindows[T_contra]):
    """Time windows that contain the timestamp of a record, and fire at their end."""

    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Returns the windows that contain the timestamp, the latest one first.

        For sessions, the session of this record alone.

        A record without timestamp is an error. Flink puts it into a session at the smallest timestamp.
        """
        if timestamp <= MIN_LONG_VALUE:
            check_timestamp(element, timestamp, self)
        return self._windows_at(element, timestamp, context)

    def get_default_trigger(self, env: Any = None) -> EventTimeTrigger:
        """Fires at the end of the window."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """Always True."""
        return True


class ProcessingTimeWindows(TimeWindows[T_contra]):
    """Time windows that contain the current time, and fire at their end."""

    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Returns the windows that contain the current time, the latest one first.

        For sessions, the session of this record alone.
        """
        return self._windows_at(element, context.get_current_processing_time(), context)

    def get_default_trigger(self, env: Any = None) -> ProcessingTimeTrigger:
        """Fires at the end of the window."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """Always False."""
        return False


class WindowStagger(Enum):
    """How the tumbling windows of different subtasks are offset from each other. Flink: WindowStagger.

    The offset of a subtask is chosen at its first record, and is stored in checkpoints. Flink chooses it again after
    each restore.
    """

    ALIGNED = 0
    """The windows of all subtasks start at the same times. This is the default."""
    RANDOM = 1
    """Each subtask has a random offset.

    It is computed from the operator's name and the number of the subtask, so a job gives the same results each time.
    """
    NATURAL = 2
    """The windows of a subtask start relative to the processing time of its first record."""


class _RegularWindows(TimeWindows[Any]):
    """Windows that start at regular intervals.

    Consecutive records get the same objects. So most look-ups of a window need not compare it, nor compute its hash code.
    """

    _latest: tuple[range, list[TimeWindow]] = range(0), []

    def _windows_around(self, time: int, size: int, slide: int, offset: int) -> list[TimeWindow]:
        starts = range(time - (time - offset) % slide, time - size, -slide)
        latest = self._latest
        if latest[0] != starts:
            latest = self._latest = starts, [TimeWindow(start, start + size) for start in starts]
        return latest[1].copy()


class _TumblingWindows(_RegularWindows):
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
        """Size, slide (equal to the size) and offset in milliseconds."""
        return self._size, self._size, self._offset

    @classmethod
    def of(
        cls,
        size: Span,
        offset: Span | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> Self:
        """Creates the assigner. A span is a Time, Duration or timedelta, or an int of milliseconds.

        >>> TumblingEventTimeWindows.of(3_600_000, offset=-900_000)
        TumblingEventTimeWindows(3600000, -900000)

        Args:
            size: The size of a window.
            offset: The offset of the window starts from multiples of the size: -8 hours for days in China.
            window_stagger: Whether windows of different subtasks start at different times. In Flink, only in the Java
                API.

        Raises:
            ValueError: The size is not positive, or the offset is not smaller than the size.
        """
        return cls(millis_of(size), millis_of(offset or 0), window_stagger)

    def _windows_at(
        self, element: Any, time: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        stagger_ms = self._stagger_ms
        if stagger_ms is None:
            stagger_ms = self._stagger_ms = self._choose_stagger(context)
        return self._windows_around(time, self._size, self._size, self._offset + stagger_ms)

    def _choose_stagger(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """The offset of the subtask: restored from its state, or newly chosen."""
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

    def __repr__(self) -> str:
        stagger = "" if self.stagger is WindowStagger.ALIGNED else f", {self.stagger.name}"
        return f"{type(self).__name__}({self._size}, {self._offset}{stagger})"

    @property
    def plan_name(self) -> str:
        """The result of Flink's toString, which omits the offset."""
        return f"{type(self).__name__}({self._size})"


_STAGGER = ListStateDescriptor("opchain-window-stagger", Types.LONG())


class TumblingEventTimeWindows(_TumblingWindows, EventTimeWindows[Any]):
    """Windows of a fixed size without gaps, in event time."""


class TumblingProcessingTimeWindows(_TumblingWindows, ProcessingTimeWindows[Any]):
    """Windows of a fixed size without gaps, in processing time."""


class _SlidingWindows(_RegularWindows):
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

    @classmethod
    def of(cls, size: Span, slide: Span, offset: Span | None = None) -> Self:
        """Creates the assigner. A span is a Time, Duration or timedelta, or an int of milliseconds.

        Args:
            size: The size of a window.
            slide: The distance between the starts of two windows.
            offset: The offset of the window starts from multiples of the slide.

        Raises:
            ValueError: The size or slide is not positive, or the offset is not smaller than the slide.
        """
        return cls(millis_of(size), millis_of(slide), millis_of(offset or 0))

    def _windows_at(
        self, element: Any, time: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return self._windows_around(time, self._size, self._slide, self._offset)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._size}, {self._slide}, {self._offset})"

    @property
    def plan_name(self) -> str:
        """The result of Flink's toString, which omits the offset."""
        return f"{type(self).__name__}({self._size}, {self._slide})"


class SlidingEventTimeWindows(_SlidingWindows, EventTimeWindows[Any]):
    """Windows of a fixed size that start at regular intervals (the slide), in event time.

    They overlap if the slide is smaller than the size. If it is larger, records between two windows are in no window.
    """


class SlidingProcessingTimeWindows(_SlidingWindows, ProcessingTimeWindows[Any]):
    """Windows of a fixed size that start at regular intervals (the slide), in processing time."""


def check_timestamp(element: Any, timestamp: int, assigner: WindowAssigner[Any, Any]) -> None:
    """Raises an error for a record without event time.

    Raises:
        ValueError: The timestamp is -2**63, which means that the record has none.
    """
    if timestamp <= MIN_LONG_VALUE:
        raise ValueError(
            f"{type(assigner).__name__} needs event time, and record {short_repr(element)} has no "
            "timestamp; call assign_timestamps_and_watermarks() before the window, or use the "
            "processing-time windows"
        )


class SessionWindowTimeGapExtractor(ABC, Generic[T_contra]):
    """Computes the session gap of a record."""

    @abstractmethod
    def extract(self, element: T_contra) -> int:
        """Returns the gap in milliseconds; more than 0."""


class _SessionWindows(TimeWindows[T_contra], MergingWindowAssigner[T_contra, TimeWindow]):
    """Assigns each record its own window, from the record's time until the gap has passed.

    Windows that touch are merged.
    """

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        """Merges sessions that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)

    def _windows_at(
        self, element: T_contra, time: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return [TimeWindow(time, time + self.gap_of(element))]

    @abstractmethod
    def gap_of(self, element: T_contra) -> int:
        """The session gap of a record in milliseconds."""


def merges_neighbors(assigner: Any) -> bool:
    """Whether an assigner merges exactly the windows that overlap or touch, as session windows do."""
    return type(assigner).merge_windows is _SessionWindows.merge_windows


class _FixedGap(_SessionWindows[Any]):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise ValueError(
                f"{type(self).__name__}: the gap is {session_gap} ms; it must be positive"
            )
        self.session_gap = session_gap

    @classmethod
    def with_gap(cls, size: Span) -> Self:
        """Creates the assigner.

        Args:
            size: The gap: a Time, Duration or timedelta, or an int of milliseconds.

        Raises:
            ValueError: The gap is not positive.
        """
        return cls(millis_of(size))

    def gap_of(self, element: Any) -> int:
        return self.session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class _DynamicGap(_SessionWindows[T]):
    def __init__(
        self,
        session_window_time_gap_extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> None:
        extractor = session_window_time_gap_extractor
        if isinstance(extractor, SessionWindowTimeGapExtractor):
            self._extract: Callable[[T], int] = extractor.extract
        elif callable(extractor):
            self._extract = extractor
        else:
            raise TypeError(
                f"{type(self).__name__}: expected a SessionWindowTimeGapExtractor or a callable, got "
                f"{short_repr(extractor)}"
            )

    @classmethod
    def with_dynamic_gap(
        cls, extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int]
    ) -> Self:
        """Creates the assigner.

        Args:
            extractor: Returns the gap of a record in milliseconds: a SessionWindowTimeGapExtractor or a callable.

        Raises:
            TypeError: The extractor is neither.
        """
        return cls(extractor)

    def gap_of(self, element: T) -> int:
        gap = self._extract(element)
        if gap <= 0:
            raise ValueError(
                f"{type(self).__name__}: the gap of record {short_repr(element)} is {gap} ms; "
                "it must be positive"
            )
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class EventTimeSessionWindows(_FixedGap, EventTimeWindows[Any]):
    """Sessions in event time. A session ends a fixed gap after its last record."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicEventTimeSessionWindows[T]:
        """Creates an assigner with a gap that depends on the record."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedGap, ProcessingTimeWindows[Any]):
    """Sessions in processing time. A session ends a fixed gap after its last record has arrived."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicProcessingTimeSessionWindows[T]:
        """Creates an assigner with a gap that depends on the record."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(_DynamicGap[T], EventTimeWindows[T]):
    """Sessions in event time, with a gap that depends on the record."""


class DynamicProcessingTimeSessionWindows(_DynamicGap[T], ProcessingTimeWindows[T]):
    """Sessions in processing time, with a gap that depends on the record."""
