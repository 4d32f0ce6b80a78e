# ruff: noqa: ARG002 - the base class defines the arguments
"""Evictors remove elements from a window before or after the window function. In Flink, only the Java API has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.callables import as_function, name_of
from opchain.runtime.functions.record_functions import DeltaFunction
from opchain.runtime.functions.type_variables import W_contra
from opchain.runtime.functions.window import Window
from opchain.runtime.time import Duration, Time, millis_of
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


@dataclass(slots=True)
class TimestampedValue(Generic[T]):
    """An element of a window with its event time in milliseconds. None for an element without timestamp."""

    value: T
    timestamp: int | None = None

    def get_value(self) -> T:
        """The element."""
        return self.value

    def get_timestamp(self) -> int:
        """The event time in milliseconds.

        Raises:
            ValueError: The element has no timestamp.
        """
        if self.timestamp is None:
            raise ValueError(
                f"window element {short_repr(self.value)} has no timestamp; check has_timestamp() first, or call "
                "assign_timestamps_and_watermarks() before the window"
            )
        return self.timestamp

    def has_timestamp(self) -> bool:
        """Whether the element has a timestamp."""
        return self.timestamp is not None


class Evictor(ABC, Generic[T, W_contra]):
    """Removes elements from a window: the methods remove them from their list.

    A window with an evictor keeps all its elements, even with `reduce` or `aggregate`.
    """

    class EvictorContext(ABC):
        """The clocks and the metric group."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The current time of the machine in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> Any:
            """The metric group of the window operator."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The current watermark in milliseconds."""

    @abstractmethod
    def evict_before(
        self,
        elements: list[TimestampedValue[T]],
        size: int,
        window: W_contra,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Removes the elements that the window function must not get from `elements`, in place.

        Args:
            elements: The elements of the window in the order of their arrival.
            size: The number of elements.
            window: The window that fires.
            evictor_context: The clocks and the metric group.
        """

    @abstractmethod
    def evict_after(
        self,
        elements: list[TimestampedValue[T]],
        size: int,
        window: W_contra,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Removes the elements that the next firing must not get from `elements`, in place; see `evict_before`."""


class _OneSidedEvictor(Evictor[T, Window]):
    """Evicts either before or after the window function."""

    def __init__(self, do_evict_after: bool) -> None:
        self._do_evict_after = do_evict_after

    def evict_before(
        self,
        elements: list[TimestampedValue[T]],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Evicts, unless `do_evict_after` is set."""
        if not self._do_evict_after:
            self._evict(elements, size)

    def evict_after(
        self,
        elements: list[TimestampedValue[T]],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Evicts, if `do_evict_after` is set."""
        if self._do_evict_after:
            self._evict(elements, size)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue[T]], size: int) -> None:
        """Removes elements in place."""


class CountEvictor(_OneSidedEvictor[Any]):
    """Keeps the last `max_count` elements."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Creates the evictor.

        Args:
            max_count: The number of elements to keep.
            do_evict_after: Whether to evict after the window function instead of before.
        """
        return CountEvictor(max_count, do_evict_after)

    def __repr__(self) -> str:
        return f"CountEvictor({self._max_count})"

    def _evict(self, elements: list[TimestampedValue[Any]], size: int) -> None:
        del elements[: max(0, size - self._max_count)]


class TimeEvictor(_OneSidedEvictor[Any]):
    """Keeps the elements whose timestamps are less than `window_size` before the newest timestamp.

    As in Flink, it does nothing if the first element has no timestamp.
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._window_size = window_size

    @staticmethod
    def of(
        window_size: Time | Duration | timedelta | int, do_evict_after: bool = False
    ) -> TimeEvictor:
        """Creates the evictor.

        Args:
            window_size: The time span; an int is milliseconds.
            do_evict_after: Whether to evict after the window function instead of before.
        """
        return TimeEvictor(millis_of(window_size), do_evict_after)

    def __repr__(self) -> str:
        return f"TimeEvictor({self._window_size})"

    def _evict(self, elements: list[TimestampedValue[Any]], size: int) -> None:
        if not elements or not elements[0].has_timestamp():
            return
        cut_off = max(element.get_timestamp() for element in elements) - self._window_size
        elements[:] = [element for element in elements if element.get_timestamp() > cut_off]


class DeltaEvictor(_OneSidedEvictor[T]):
    """Removes elements whose distance from the newest element is at least a threshold."""

    def __init__(
        self,
        threshold: float,
        delta_function: DeltaFunction[T] | Callable[[T, T], float],
        do_evict_after: bool = False,
    ) -> None:
        super().__init__(do_evict_after)
        self._threshold = threshold
        self._delta: DeltaFunction[T] = as_function(DeltaFunction, delta_function, "DeltaEvictor")

    @staticmethod
    def of(
        threshold: float,
        delta_function: DeltaFunction[T] | Callable[[T, T], float],
        do_evict_after: bool = False,
    ) -> DeltaEvictor[T]:
        """Creates the evictor.

        Args:
            threshold: The distance from which an element is removed.
            delta_function: Called with an element and the newest one.
            do_evict_after: Whether to evict after the window function instead of before.
        """
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def __repr__(self) -> str:
        return f"DeltaEvictor({name_of(self._delta)}, {self._threshold})"

    def _evict(self, elements: list[TimestampedValue[T]], size: int) -> None:
        if not elements:
            return
        newest = elements[-1].value
        distance = self._delta.get_delta
        elements[:] = [
            element for element in elements if distance(element.value, newest) < self._threshold
        ]
