# ruff: noqa: ARG002 - the arguments are the assigner contract's
"""Session windows: records of a key that come close together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.window import TimeWindow, TimeWindowSerializer
from opchain.runtime.time import millis_of
from opchain.runtime.types.type_variables import T, T_contra
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.time_windows import check_timestamp
from opchain.runtime.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.windows.time_windows import Span


class SessionWindowTimeGapExtractor(ABC, Generic[T_contra]):
    """Says how long a session waits after a record."""

    @abstractmethod
    def extract(self, element: T_contra) -> int:
        """The gap in milliseconds; more than 0."""


class _SessionWindows(MergingWindowAssigner[T_contra, TimeWindow]):
    """Gives each record a window of its own, from its time over the gap; those that touch merge."""

    def merge_windows(
        self,
        windows: Iterable[TimeWindow],
        callback: MergingWindowAssigner.MergeCallback[TimeWindow],
    ) -> None:
        """Merges the sessions that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)

    def get_window_serializer(self) -> TimeWindowSerializer:
        """Flink's."""
        return TimeWindowSerializer()

    @abstractmethod
    def _gap_of(self, element: T_contra) -> int:
        """How long a session waits after a record, in milliseconds."""


class _EventTimeSessions(_SessionWindows[T_contra]):
    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """The session that the record alone would make.

        Flink lets a record without timestamp into a session at the beginning of time; here it is an
        error, as with the other event-time windows.
        """
        check_timestamp(element, timestamp, self)
        return [TimeWindow(timestamp, timestamp + self._gap_of(element))]

    def get_default_trigger(self, env: Any = None) -> EventTimeTrigger:
        """Fires at the end of the session."""
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        """True."""
        return True


class _ProcessingTimeSessions(_SessionWindows[T_contra]):
    def assign_windows(
        self, element: T_contra, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """The session that the record alone would make."""
        now = context.get_current_processing_time()
        return [TimeWindow(now, now + self._gap_of(element))]

    def get_default_trigger(self, env: Any = None) -> ProcessingTimeTrigger:
        """Fires at the end of the session."""
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        """False."""
        return False


class _FixedGap(_SessionWindows[Any]):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise ValueError(
                f"{type(self).__name__}: the gap is {session_gap} ms; it must be positive"
            )
        self._session_gap = session_gap

    def _gap_of(self, element: Any) -> int:
        return self._session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._session_gap})"


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

    def _gap_of(self, element: T) -> int:
        gap = self._extract(element)
        if gap <= 0:
            raise ValueError(
                f"{type(self).__name__}: the gap of record {short_repr(element)} is {gap} ms; "
                "it must be positive"
            )
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class EventTimeSessionWindows(_FixedGap, _EventTimeSessions[Any]):
    """Sessions by the records' timestamps; a session ends a fixed gap after its last record."""

    @staticmethod
    def with_gap(size: Span) -> EventTimeSessionWindows:
        """The assigner.

        Args:
            size: The gap: a Time, Duration, timedelta, or an int of milliseconds.

        Raises:
            ValueError: the gap is not positive.
        """
        return EventTimeSessionWindows(millis_of(size))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicEventTimeSessionWindows[T]:
        """An assigner whose gap depends on the record."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedGap, _ProcessingTimeSessions[Any]):
    """Sessions by the machine's time; a session ends a fixed gap after its last record came."""

    @staticmethod
    def with_gap(size: Span) -> ProcessingTimeSessionWindows:
        """The assigner; see EventTimeSessionWindows.with_gap."""
        return ProcessingTimeSessionWindows(millis_of(size))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicProcessingTimeSessionWindows[T]:
        """An assigner whose gap depends on the record."""
        return DynamicProcessingTimeSessionWindows(extractor)


class DynamicEventTimeSessionWindows(_DynamicGap[T], _EventTimeSessions[T]):
    """Sessions by the records' timestamps, with a gap that depends on the record."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicEventTimeSessionWindows[T]:
        """The assigner.

        Args:
            extractor: Gives the gap after a record in milliseconds; an extractor or a callable.

        Raises:
            TypeError: it is neither.
        """
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicGap[T], _ProcessingTimeSessions[T]):
    """Sessions by the machine's time, with a gap that depends on the record."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor[T] | Callable[[T], int],
    ) -> DynamicProcessingTimeSessionWindows[T]:
        """The assigner; see DynamicEventTimeSessionWindows.with_dynamic_gap."""
        return DynamicProcessingTimeSessionWindows(extractor)
