"""The global window with its triggers, and count windows.

The assigner of count windows keeps the number of records per key in state, and this number chooses the windows of a
record. So a window is complete when it fires. In Flink's Java API, count windows are a trigger on the global window:
there the first window of a sliding pair fires before it has its full size.
At the end of the input, windows that are not full do not fire.
"""
# ruff: noqa: ARG002 - the arguments are the assigner contract's
# ruff: noqa: ARG002 - the arguments are the contracts'

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
        """Goes on."""
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Has nothing to clear."""


class EndOfStreamTrigger(NeverTrigger):
    """Fires once, when the input has ended. Java only in Flink."""

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Waits for the last watermark."""
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Fires at the end of time."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """Puts all records of a key into one window, which needs a trigger to fire at all."""

    def __init__(self, default_trigger: Trigger[Any, Window] | None = None) -> None:
        self._default_trigger = default_trigger or NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """The assigner; its window fires only by the trigger that the stream names."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """The assigner with a window that fires at the end of the input. Java only in Flink."""
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        """The one window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Window]:
        """NeverTrigger, or EndOfStreamTrigger."""
        return self._default_trigger

    def get_window_serializer(self) -> GlobalWindowSerializer:
        """Flink's."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """It is not."""
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


class _CountWindows(WindowAssigner[Any, CountWindow]):
    def __init__(self, window_size: int, descriptor_name: str) -> None:
        self.window_size = _positive(window_size, "window size", self)
        self.count = ValueStateDescriptor(descriptor_name, Types.LONG())

    def _count_up(self, context: WindowAssigner.WindowAssignerContext) -> int:
        """How many records of the key came before this one."""
        state = context.get_runtime_context().get_state(self.count)
        before = state.value() or 0
        state.update(before + 1)
        return before

    def get_default_trigger(self, env: Any = None) -> PurgingTrigger[Any, CountWindow]:
        """Fires when the window is full, and drops its contents, which nothing asks for again.

        PyFlink's doesn't purge, and keeps the contents of each window forever.
        """
        return PurgingTrigger(CountTrigger(self.window_size))

    def get_window_serializer(self) -> CountWindowSerializer:
        """Flink's."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """It is not."""
        return False


class CountTumblingWindowAssigner(_CountWindows):
    """Windows of so many records of a key, one after the other."""

    def __init__(self, window_size: int) -> None:
        super().__init__(window_size, "tumble-count-assigner")

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """The assigner.

        Raises:
            ValueError: the size is not positive.
        """
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        """The one window that is being filled."""
        return [CountWindow(self._count_up(context) // self.window_size)]

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(_CountWindows):
    """Windows of so many records of a key, one starting with every so many."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size, "slide-count-assigner")
        self._window_slide = _positive(window_slide, "window slide", self)

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """The assigner.

        Raises:
            ValueError: a number is not positive.
        """
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[CountWindow]:
        """The windows that are being filled, the latest one first."""
        position = self._count_up(context)
        latest = position // self._window_slide
        earliest = max(0, -((self.window_size - 1 - position) // self._window_slide))
        return [CountWindow(number) for number in range(latest, earliest - 1, -1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self._window_slide})"


def _positive(number: int, what: str, assigner: WindowAssigner[Any, Any]) -> int:
    if number <= 0:
        raise ValueError(f"{type(assigner).__name__}: {what} is {number}; it must be positive")
    return number
