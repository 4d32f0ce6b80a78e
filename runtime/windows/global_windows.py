"""The global window with its triggers, and count windows.

The assigner of count windows counts the records of each key in state, and the count decides the windows of a record. So
a window fires when it is complete. In Flink's Java API, count windows are a trigger on the global window: the first
window of a sliding pair fires before it has its full size. Windows that are incomplete at the end of the input do not
fire.
"""
# ruff: noqa: ARG002 - the base classes define the arguments

from __future__ import annotations

from typing import Any

from opchain.runtime.functions.state_descriptors import ValueStateDescriptor
from opchain.runtime.functions.window import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    Window,
)
from opchain.runtime.types.types import Types
from opchain.runtime.windows.assigners import WindowAssigner
from opchain.runtime.windows.data_triggers import CountTrigger, PurgingTrigger
from opchain.runtime.windows.triggers import ContinuingTrigger, Trigger, TriggerResult


class NeverTrigger(ContinuingTrigger[Any, Window]):
    """Never fires."""

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Never fires."""
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Does nothing: the trigger has no state."""


class EndOfStreamTrigger(NeverTrigger):
    """Fires once, when the input has ended. In Flink, only the Java API has this trigger."""

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Registers a timer for the last watermark, which comes at the end of the input."""
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at the last watermark."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Assigns all records of a key to one window. Without a trigger, the window never fires."""

    def __init__(self, default_trigger: Trigger[Any, Window] | None = None) -> None:
        self._default_trigger = default_trigger or NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """Creates the assigner. Its window never fires unless the stream sets a trigger."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """Creates the assigner. Its window fires at the end of the input.

        In Flink, only the Java API has this method.
        """
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        """Returns the global window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Window]:
        """NeverTrigger, or EndOfStreamTrigger."""
        return self._default_trigger

    def get_window_serializer(self) -> GlobalWindowSerializer:
        """Flink's serializer of global windows."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """Always False."""
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


class CountWindowAssigner(WindowAssigner[Any, CountWindow]):
    """Windows of `window_size` records of a key. A window starts every `window_slide` records."""

    def __init__(self, window_size: int, window_slide: int, descriptor_name: str) -> None:
        self.window_size = _positive(window_size, "window size", self)
        self.window_slide = _positive(window_slide, "window slide", self)
        self.count = ValueStateDescriptor(descriptor_name, Types.LONG())

    def numbers_at(self, position: int) -> range:
        """The windows of the record that comes after `position` records of the key, the latest one first."""
        latest = position // self.window_slide
        earliest = max(0, -((self.window_size - 1 - position) // self.window_slide))
        return range(latest, earliest - 1, -1)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        """Counts the record, and returns the incomplete windows of the key, the latest one first."""
        state = context.get_runtime_context().get_state(self.count)
        position = state.value() or 0
        state.update(position + 1)
        return list(map(CountWindow, self.numbers_at(position)))

    def get_default_trigger(self, env: Any = None) -> PurgingTrigger[Any, CountWindow]:
        """Fires and purges when the window is full.

        PyFlink's trigger does not purge, so PyFlink keeps the contents of each window forever.
        """
        return PurgingTrigger(CountTrigger(self.window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        """Flink's serializer of count windows."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """Always False."""
        return False


class CountTumblingWindowAssigner(CountWindowAssigner):
    """Windows of `window_size` records of a key, without overlap."""

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size, window_size, "tumble-count-assigner")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Creates the assigner.

        Raises:
            ValueError: The size is not positive.
        """
        return CountTumblingWindowAssigner(window_size)

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(CountWindowAssigner):
    """Windows of `window_size` records of a key. A window starts every `window_slide` records."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size, window_slide, "slide-count-assigner")

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Creates the assigner.

        Raises:
            ValueError: The size or the slide is not positive.
        """
        return CountSlidingWindowAssigner(window_size, window_slide)

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"


def _positive(number: int, what: str, assigner: WindowAssigner[Any, Any]) -> int:
    if number <= 0:
        raise ValueError(f"{type(assigner).__name__}: {what} is {number}; it must be positive")
    return number
