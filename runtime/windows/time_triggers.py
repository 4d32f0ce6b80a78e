# ruff: noqa: ARG002 - the arguments are the trigger contract's
"""Triggers that follow a clock."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from opchain.runtime.state.descriptors import ReducingStateDescriptor
from opchain.runtime.time import millis_of
from opchain.runtime.types.types import Types
from opchain.runtime.windows.triggers import Trigger, TriggerResult
from opchain.runtime.windows.window import Window

if TYPE_CHECKING:
    from datetime import timedelta

    from opchain.runtime.state.state import ReducingState
    from opchain.runtime.time import Duration, Time


class EventTimeTrigger(Trigger[Any, Window]):
    """Fires when the watermark passes the end of the window, and then for each late element."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """The trigger."""
        return EventTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires where the watermark has passed the window already; else waits for it."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at the end of the window; a timer of other code in the window is not its own."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Waits for the end of the merged window, if that is still to come."""
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Takes back the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[Any, Window]):
    """Fires when the machine's time passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """The trigger."""
        return ProcessingTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Waits for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires."""
        return TriggerResult.FIRE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Waits for the end of the merged window, if that is still to come."""
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Takes back the timer."""
        ctx.delete_processing_time_timer(window.max_timestamp())


class _ContinuousTrigger(Trigger[Any, Window]):
    """Fires at every multiple of an interval, and at the end of the window.

    The next time to fire is state `fire-time`; where windows merge, the earliest one counts.
    """

    def __init__(self, interval: int) -> None:
        if interval <= 0:
            raise ValueError(
                f"the interval of {type(self).__name__} is {interval} ms; it must be positive"
            )
        self.interval = interval
        self.state_desc = ReducingStateDescriptor("fire-time", min, Types.LONG())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.interval})"

    @abstractmethod
    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        """Sets a timer of the trigger's clock."""

    @abstractmethod
    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        """Takes back a timer of the trigger's clock."""

    def _start(self, now: int, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Sets the first time to fire, where there is none: the first multiple after now."""
        fire_time = ctx.get_partitioned_state(self.state_desc)
        if fire_time.get() is None:
            # Flink in Java rounds toward zero, so that before 1970 it leaves out the multiple that
            # follows `now`; PyFlink rounds down, as here.
            self._fire_next_after(now - now % self.interval, window, ctx, fire_time)

    def _on_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time = ctx.get_partitioned_state(self.state_desc)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self._fire_next_after(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def _fire_next_after(
        self,
        time: int,
        window: Window,
        ctx: Trigger.TriggerContext,
        fire_time: ReducingState[int],
    ) -> None:
        following = min(time + self.interval, window.max_timestamp())
        fire_time.add(following)
        self._register(ctx, following)

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Fires next when the first of the merged windows would have."""
        ctx.merge_partitioned_state(self.state_desc)
        following = ctx.get_partitioned_state(self.state_desc).get()
        if following is not None:
            self._register(ctx, following)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Takes back the timer and forgets the time."""
        fire_time = ctx.get_partitioned_state(self.state_desc)
        following = fire_time.get()
        if following is not None:
            self._delete(ctx, following)
            fire_time.clear()


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires whenever the watermark passes a multiple of the interval, and the end of the window."""

    @staticmethod
    def of(interval: Time | Duration | timedelta | int) -> ContinuousEventTimeTrigger:
        """The trigger; an int is milliseconds."""
        return ContinuousEventTimeTrigger(millis_of(interval))

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires where the watermark has passed the window already; else waits."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        self._start(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at the time it waits for, and at the end of the window."""
        return self._on_time(time, window, ctx)

    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.delete_event_time_timer(time)


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires whenever the machine's time passes a multiple of the interval."""

    @staticmethod
    def of(interval: Time | Duration | timedelta | int) -> ContinuousProcessingTimeTrigger:
        """The trigger; an int is milliseconds."""
        return ContinuousProcessingTimeTrigger(millis_of(interval))

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Waits for the next multiple, counted from now."""
        self._start(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at the time it waits for, and at the end of the window."""
        return self._on_time(time, window, ctx)

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.delete_processing_time_timer(time)
