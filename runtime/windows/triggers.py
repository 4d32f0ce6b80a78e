"""The base class of triggers, which decide when a window fires, and the triggers that depend on time."""
# ruff: noqa: ARG002 - the base class defines the arguments

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.state_descriptors import ReducingStateDescriptor, StateDescriptor
from opchain.runtime.functions.type_variables import W_contra
from opchain.runtime.functions.window import Window
from opchain.runtime.time import Duration, Time, millis_of
from opchain.runtime.types.type_variables import T_contra
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from datetime import timedelta

    from opchain.runtime.functions.state import ReducingState
    from opchain.runtime.functions.type_variables import S


class TriggerResult(Enum):
    """The decision of a trigger about a window; the value is (fire, purge)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window function is called. It is not called for an empty window."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the window's contents are dropped. The trigger's state and timers are kept."""
        return self.value[1]


class Trigger(ABC, Generic[T_contra, W_contra]):
    """Decides when a window of a key fires, and when its contents are dropped.

    One object serves all keys and windows. So a trigger must keep its state in `ctx.get_partitioned_state`, which
    belongs to the current key and window. All times are milliseconds.
    """

    class TriggerContext(ABC):
        """The clocks, and the timers and state of the current key and window."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The current time of the machine."""

        @abstractmethod
        def get_metric_group(self) -> Any:
            """The metric group of the window operator."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The current watermark."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Registers a timer that calls `on_processing_time`. Registering it again has no effect."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Registers a timer that calls `on_event_time` at this watermark. Registering it again has no effect."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Deletes the timer of this time, if it exists."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Deletes the timer of this time, if it exists."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor[S]) -> S:
            """The state of the current key and window."""

    class OnMergeContext(TriggerContext):
        """The context of a window that results from a merge."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor[Any]) -> None:
            """Merges the states of the merged windows into this window's state: list, reducing or aggregating state."""

    @abstractmethod
    def on_element(
        self, element: T_contra, timestamp: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Called for each element that is added to the window.

        Args:
            element: The record.
            timestamp: Its event time; -2**63 for a record without timestamp.
            window: The window; for session windows, after merging.
            ctx: See TriggerContext.
        """

    @abstractmethod
    def on_processing_time(
        self, time: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Called when a processing-time timer of this window fires."""

    @abstractmethod
    def on_event_time(
        self, time: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Called when an event-time timer of this window fires."""

    def can_merge(self) -> bool:
        """Whether the trigger supports merging windows, such as sessions. By default: whether it implements `on_merge`.

        In PyFlink the default is False, but `window` of a keyed stream does not ask.
        """
        return type(self).on_merge is not Trigger.on_merge

    def on_merge(self, window: W_contra, ctx: Trigger.OnMergeContext) -> None:
        """Called after windows were merged into this one. Must merge their states and register timers again.

        In PyFlink, every trigger must implement it. Here only triggers that support merging need it.
        """
        name = type(self).__name__
        raise NotImplementedError(
            f"trigger '{name}' can't be used with windows that merge: "
            + (
                "can_merge() is true, but on_merge() is missing"
                if self.can_merge()
                else "its can_merge() is false"
            )
        )

    @abstractmethod
    def clear(self, window: W_contra, ctx: Trigger.TriggerContext) -> None:
        """Removes the trigger's timers and state when the window is removed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ContinuingTrigger(Trigger[T_contra, W_contra]):
    """A trigger that does not fire for timers by default. Subclasses override the method of their clock."""

    def on_processing_time(
        self, time: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Does not fire."""
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Does not fire."""
        return TriggerResult.CONTINUE


class EventTimeTrigger(ContinuingTrigger[Any, Window]):
    """Fires when the watermark passes the end of the window, and then for each late element."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """Creates the trigger."""
        return EventTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires if the watermark has passed the end of the window; otherwise registers a timer for it."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at the end of the window. Other timers are ignored."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Registers a timer for the end of the merged window, unless the watermark has passed it."""
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Deletes the timer."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(ContinuingTrigger[Any, Window]):
    """Fires when the processing time passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Creates the trigger."""
        return ProcessingTimeTrigger()

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Registers a timer for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires."""
        return TriggerResult.FIRE

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Registers a timer for the end of the merged window, unless that time has passed."""
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Deletes the timer."""
        ctx.delete_processing_time_timer(window.max_timestamp())


class _ContinuousTrigger(ContinuingTrigger[Any, Window]):
    """Fires at every multiple of an interval, and at the end of the window.

    The state `fire-time` is the next time to fire. When windows merge, the earliest time wins.
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
        """Registers a timer of the trigger's clock."""

    @abstractmethod
    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        """Deletes a timer of the trigger's clock."""

    def _start(self, now: int, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Sets the first time to fire, if none is set: the first multiple of the interval after now."""
        fire_time = ctx.get_partitioned_state(self.state_desc)
        if fire_time.get() is None:
            # Flink's Java trigger rounds toward zero, so before 1970 it skips the multiple after `now`. PyFlink rounds
            # down, as here.
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

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Registers a timer for the earliest time of the merged windows."""
        ctx.merge_partitioned_state(self.state_desc)
        following = ctx.get_partitioned_state(self.state_desc).get()
        if following is not None:
            self._register(ctx, following)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Deletes the timer and the state."""
        fire_time = ctx.get_partitioned_state(self.state_desc)
        following = fire_time.get()
        if following is not None:
            self._delete(ctx, following)
            fire_time.clear()


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires when the watermark passes a multiple of the interval or the end of the window."""

    @staticmethod
    def of(interval: Time | Duration | timedelta | int) -> ContinuousEventTimeTrigger:
        """Creates the trigger. An int is milliseconds."""
        return ContinuousEventTimeTrigger(millis_of(interval))

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires if the watermark has passed the window. Otherwise registers timers."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        self._start(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at its next time, and at the end of the window."""
        return self._on_time(time, window, ctx)

    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.delete_event_time_timer(time)


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires when the processing time passes a multiple of the interval."""

    @staticmethod
    def of(interval: Time | Duration | timedelta | int) -> ContinuousProcessingTimeTrigger:
        """Creates the trigger. An int is milliseconds."""
        return ContinuousProcessingTimeTrigger(millis_of(interval))

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Registers a timer for the next multiple of the interval, if there is none."""
        self._start(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at its next time, and at the end of the window."""
        return self._on_time(time, window, ctx)

    def _register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.delete_processing_time_timer(time)
