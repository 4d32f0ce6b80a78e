# ruff: noqa: ARG002 - the arguments are the evictor contract's
"""Evictors: what is taken out of a window before or after it is evaluated. Java only in Flink."""

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
    """An element of a window with its event time in milliseconds, None where it has none."""

    value: T
    timestamp: int | None = None

    def get_value(self) -> T:
        """The element."""
        return self.value

    def get_timestamp(self) -> int:
        """The event time.

        Raises:
            ValueError: there is none.
        """
        if self.timestamp is None:
            raise ValueError(f"window element {short_repr(self.value)} has no timestamp")
        return self.timestamp

    def has_timestamp(self) -> bool:
        """Whether there is an event time."""
        return self.timestamp is not None


class Evictor(ABC, Generic[T, W_contra]):
    """Takes elements out of a window: it removes them from the list that it is given.

    A window with an evictor keeps all its elements, also where it reduces or aggregates.
    """

    class EvictorContext(ABC):
        """The clocks."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The machine's time in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> Any:
            """The metric group of the window operator."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The event time reached so far, in milliseconds."""

    @abstractmethod
    def evict_before(
        self,
        elements: list[TimestampedValue[T]],
        size: int,
        window: W_contra,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Removes from `elements`, in place, what the window function is not to see.

        Args:
            elements: The window's elements in the order in which they came.
            size: How many they are.
            window: The window that fires.
            evictor_context: The clocks.
        """

    @abstractmethod
    def evict_after(
        self,
        elements: list[TimestampedValue[T]],
        size: int,
        window: W_contra,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Removes from `elements`, in place, what the next firing is not to see; see `evict_before`."""


class _OneSidedEvictor(Evictor[T, Window]):
    """Evicts either before or after the evaluation."""

    def __init__(self, do_evict_after: bool) -> None:
        self._do_evict_after = do_evict_after

    def evict_before(
        self,
        elements: list[TimestampedValue[T]],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Evicts, unless it was told to do so afterwards."""
        if not self._do_evict_after:
            self._evict(elements, size)

    def evict_after(
        self,
        elements: list[TimestampedValue[T]],
        size: int,
        window: Window,
        evictor_context: Evictor.EvictorContext,
    ) -> None:
        """Evicts, if it was told to do so afterwards."""
        if self._do_evict_after:
            self._evict(elements, size)

    @abstractmethod
    def _evict(self, elements: list[TimestampedValue[T]], size: int) -> None:
        """Removes elements in place."""


class CountEvictor(_OneSidedEvictor[Any]):
    """Keeps the last so many elements."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """The evictor.

        Args:
            max_count: How many elements stay.
            do_evict_after: Whether it evicts after the window function instead of before.
        """
        return CountEvictor(max_count, do_evict_after)

    def __repr__(self) -> str:
        return f"CountEvictor({self._max_count})"

    def _evict(self, elements: list[TimestampedValue[Any]], size: int) -> None:
        del elements[: max(0, size - self._max_count)]


class TimeEvictor(_OneSidedEvictor[Any]):
    """Keeps the elements of the last span before the newest one; the span's far end is left out.

    Does nothing where the first element has no timestamp, as in Flink.
    """

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self._window_size = window_size

    @staticmethod
    def of(
        window_size: Time | Duration | timedelta | int, do_evict_after: bool = False
    ) -> TimeEvictor:
        """The evictor.

        Args:
            window_size: The span; an int is milliseconds.
            do_evict_after: Whether it evicts after the window function instead of before.
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
    """Removes the elements that are a threshold or more from the newest one."""

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
        """The evictor.

        Args:
            threshold: The distance at which an element is removed.
            delta_function: Called with an element and the newest one.
            do_evict_after: Whether it evicts after the window function instead of before.
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
