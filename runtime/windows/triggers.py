"""What a trigger is: it decides when a window fires.

The triggers themselves are in time_triggers, data_triggers, wrapping_triggers and global_windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.type_variables import T_contra, W_contra

if TYPE_CHECKING:
    from opchain.runtime.state.descriptors import StateDescriptor
    from opchain.runtime.type_variables import S


class TriggerResult(Enum):
    """What happens to a window after a trigger was asked: the value is (fire, purge)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window function is called, if the window holds anything."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the window's contents are dropped (its trigger's state and timers stay)."""
        return self.value[1]


class Trigger(ABC, Generic[T_contra, W_contra]):
    """Decides when the contents of one window under one key are evaluated, and when dropped.

    One object serves all keys and windows: what a trigger remembers goes into
    `ctx.get_partitioned_state`, which is state of that key and window. All times are milliseconds.
    """

    class TriggerContext(ABC):
        """The clocks, timers and state of the key and window at hand."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The machine's time."""

        @abstractmethod
        def get_metric_group(self) -> Any:
            """The metric group of the window operator."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The event time reached so far."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Asks for a call of `on_processing_time` at this time; once, however often asked."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Asks for a call of `on_event_time` once the watermark is there; once, however often."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Takes back the timer of this time, if there is one."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Takes back the timer of this time, if there is one."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor[S]) -> S:
            """The state of this key and window."""

    class OnMergeContext(TriggerContext):
        """The context of the window that others were merged into."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor[Any]) -> None:
            """Unites the merged windows' states into this window's; list, reducing, aggregating."""

    @abstractmethod
    def on_element(
        self, element: T_contra, timestamp: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Asked for each element that is put into the window.

        Args:
            element: The record.
            timestamp: Its event time; -2**63 where it has none.
            window: The window; for session windows, after it was merged.
            ctx: See TriggerContext.
        """

    @abstractmethod
    def on_processing_time(
        self, time: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Asked when a processing-time timer of this window fires."""

    @abstractmethod
    def on_event_time(
        self, time: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Asked when an event-time timer of this window fires."""

    def can_merge(self) -> bool:
        """Whether the trigger works with windows that merge, such as sessions."""
        return False

    def on_merge(self, window: W_contra, ctx: Trigger.OnMergeContext) -> None:  # noqa: ARG002 - for those that merge
        """Told that several windows became this one: merges states, and sets timers anew.

        PyFlink makes every trigger write it; here only those that can merge need it.
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
        """Removes the trigger's timers and state of a window that is dropped for good."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
