"""Triggers that depend on the elements (CountTrigger, DeltaTrigger), and triggers that wrap another trigger."""
# ruff: noqa: ARG002 - the base class defines the arguments

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.callables import as_function, name_of
from opchain.runtime.functions.record_functions import DeltaFunction
from opchain.runtime.functions.state_descriptors import (
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.functions.type_variables import W
from opchain.runtime.functions.window import Window
from opchain.runtime.time import Duration, Time, millis_of
from opchain.runtime.types.type_variables import T
from opchain.runtime.types.types import Types
from opchain.runtime.windows.triggers import ContinuingTrigger, Trigger, TriggerResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from opchain.runtime.types.type_information import TypeInformation


class CountTrigger(ContinuingTrigger[Any, Window]):
    """Fires when a number of elements have arrived, and then starts counting from 0.

    Args:
        window_size: The number of elements. With 1 or less, each element fires.
    """

    def __init__(self, window_size: int) -> None:
        self.window_size = window_size
        self.count = ReducingStateDescriptor("count", add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Creates the trigger."""
        return CountTrigger(window_size)

    def __repr__(self) -> str:
        return f"CountTrigger({self.window_size})"

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Counts the element, and fires when the number is reached."""
        count = ctx.get_partitioned_state(self.count)
        count.add(1)
        if (count.get() or 0) < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Adds up the counts. If the sum reaches the number, the next element fires."""
        ctx.merge_partitioned_state(self.count)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Removes the count."""
        ctx.get_partitioned_state(self.count).clear()


class DeltaTrigger(ContinuingTrigger[T, Window]):
    """Fires when an element's distance from the last element that fired exceeds a threshold.

    The first element of a window does not fire: the distance of the next elements is measured from it. As in Flink, it
    does not support merging windows. In Flink, only the Java API has this trigger.
    """

    def __init__(
        self,
        threshold: float,
        delta_function: DeltaFunction[T] | Callable[[T, T], float],
        type_info: TypeInformation[T] | None = None,
    ) -> None:
        self._threshold = threshold
        self._delta: DeltaFunction[T] = as_function(DeltaFunction, delta_function, "DeltaTrigger")
        self._last_element = ValueStateDescriptor("last-element", type_info)

    @staticmethod
    def of(
        threshold: float,
        delta_function: DeltaFunction[T] | Callable[[T, T], float],
        type_info: TypeInformation[T] | None = None,
    ) -> DeltaTrigger[T]:
        """Creates the trigger.

        Args:
            threshold: The trigger fires if the distance is greater.
            delta_function: Called with the last element that fired and the new one.
            type_info: The type of the elements, or None for any object.
        """
        return DeltaTrigger(threshold, delta_function, type_info)

    def __repr__(self) -> str:
        return f"DeltaTrigger({name_of(self._delta)}, {self._threshold})"

    def on_element(
        self, element: T, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Computes the distance, and fires if it exceeds the threshold."""
        state = ctx.get_partitioned_state(self._last_element)
        last = state.value()
        if last is None:
            state.update(element)
            return TriggerResult.CONTINUE
        if self._delta.get_delta(last, element) <= self._threshold:
            return TriggerResult.CONTINUE
        state.update(element)
        return TriggerResult.FIRE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Removes the last element."""
        ctx.get_partitioned_state(self._last_element).clear()


class PurgingTrigger(Trigger[T, W]):
    """Purges the contents of the window whenever the nested trigger fires."""

    def __init__(self, nested_trigger: Trigger[T, W]) -> None:
        self.nested_trigger = _checked(nested_trigger, "PurgingTrigger")

    @staticmethod
    def of(nested_trigger: Trigger[T, W]) -> PurgingTrigger[T, W]:
        """Wraps a trigger."""
        return PurgingTrigger(nested_trigger)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Calls the nested trigger."""
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Calls the nested trigger."""
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Calls the nested trigger."""
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Whether the nested trigger supports merging windows."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Calls the nested trigger."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Clears the nested trigger."""
        self.nested_trigger.clear(window, ctx)


class ProcessingTimeoutTrigger(Trigger[T, W]):
    """Fires when the nested trigger fires, or when a timeout in processing time has passed.

    The timeout starts with the first element (or restarts with each element, see `of`). It is cancelled when the nested
    trigger fires. As in Flink, it does not support merging windows. In Flink, only the Java API has this trigger.
    """

    def __init__(
        self,
        nested_trigger: Trigger[T, W],
        interval: int,
        reset_timer_on_new_record: bool,
        should_clear_on_timeout: bool,
    ) -> None:
        self._nested_trigger = _checked(nested_trigger, "ProcessingTimeoutTrigger")
        self._interval = interval
        self._reset_timer_on_new_record = reset_timer_on_new_record
        self._should_clear_on_timeout = should_clear_on_timeout
        self._timeout = ValueStateDescriptor("timeout", Types.LONG())

    @staticmethod
    def of(
        nested_trigger: Trigger[T, W],
        timeout: Time | Duration | timedelta | int,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger[T, W]:
        """Wraps a trigger.

        Args:
            nested_trigger: The wrapped trigger.
            timeout: The timeout; an int is milliseconds.
            reset_timer_on_new_record: Whether each element restarts the timeout.
            should_clear_on_timeout: Whether the timeout also clears the nested trigger, for example its count.
        """
        return ProcessingTimeoutTrigger(
            nested_trigger, millis_of(timeout), reset_timer_on_new_record, should_clear_on_timeout
        )

    def __repr__(self) -> str:
        return f"TimeoutTrigger({self._nested_trigger!r})"

    def on_element(
        self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Calls the nested trigger. If it does not fire, makes sure that a timer is registered."""
        result = self._nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        state = ctx.get_partitioned_state(self._timeout)
        running = state.value()
        if running is not None and self._reset_timer_on_new_record:
            ctx.delete_processing_time_timer(running)
            running = None
        if running is None:
            end = ctx.get_current_processing_time() + self._interval
            state.update(end)
            ctx.register_processing_time_timer(end)
        return result

    def on_processing_time(
        self, time: int, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires for a timer of either trigger. Purges if the nested trigger purges."""
        return self._timed_out(
            self._nested_trigger.on_processing_time(time, window, ctx), window, ctx
        )

    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fires. Purges if the nested trigger purges."""
        return self._timed_out(self._nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def _timed_out(
        self, result: TriggerResult, window: W, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if self._should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if result.is_purge() else TriggerResult.FIRE

    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Cancels the timeout, and clears the nested trigger."""
        state = ctx.get_partitioned_state(self._timeout)
        running = state.value()
        if running is not None:
            ctx.delete_processing_time_timer(running)
            state.clear()
        self._nested_trigger.clear(window, ctx)


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


def _checked(trigger: Trigger[T, W] | Any, where: str) -> Trigger[T, W]:
    if not isinstance(trigger, Trigger):
        raise TypeError(f"{where} takes a Trigger, not {short_repr(trigger)}")
    return trigger
