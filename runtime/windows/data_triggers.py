# ruff: noqa: ARG002 - the arguments are the trigger contract's
"""Triggers that follow the elements themselves: how many there are, how far apart."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.callables import as_function, name_of
from opchain.runtime.functions.delta_function import DeltaFunction
from opchain.runtime.state.descriptors import ReducingStateDescriptor, ValueStateDescriptor
from opchain.runtime.type_variables import T
from opchain.runtime.types.types import Types
from opchain.runtime.windows.triggers import Trigger, TriggerResult
from opchain.runtime.windows.window import Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.types.type_information import TypeInformation


class CountTrigger(Trigger[Any, Window]):
    """Fires with every so many elements, and counts from 0 again.

    Args:
        window_size: How many; 1 or less fires with each.
    """

    def __init__(self, window_size: int) -> None:
        self._window_size = window_size
        self._count = ReducingStateDescriptor("count", add, Types.LONG())

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """The trigger."""
        return CountTrigger(window_size)

    def __repr__(self) -> str:
        return f"CountTrigger({self._window_size})"

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Counts, and fires when the number is reached."""
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if (count.get() or 0) < self._window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Adds up the counts; a sum over the limit fires with the next element."""
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Forgets the count."""
        ctx.get_partitioned_state(self._count).clear()


class DeltaTrigger(Trigger[T, Window]):
    """Fires with an element that is further than a threshold from the last one that fired.

    The first element of a window fires nothing; it is what the next ones are measured from. Windows
    that merge are refused, as in Flink, which has this trigger in Java only.
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
        """The trigger.

        Args:
            threshold: The distance that must be exceeded.
            delta_function: Called with the last element that fired and the new one.
            type_info: The type of the elements, or None for any object.
        """
        return DeltaTrigger(threshold, delta_function, type_info)

    def __repr__(self) -> str:
        return f"DeltaTrigger({name_of(self._delta)}, {self._threshold})"

    def on_element(
        self, element: T, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Measures, and fires when the threshold is exceeded."""
        state = ctx.get_partitioned_state(self._last_element)
        last = state.value()
        if last is None:
            state.update(element)
            return TriggerResult.CONTINUE
        if self._delta.get_delta(last, element) <= self._threshold:
            return TriggerResult.CONTINUE
        state.update(element)
        return TriggerResult.FIRE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Forgets the last element."""
        ctx.get_partitioned_state(self._last_element).clear()
