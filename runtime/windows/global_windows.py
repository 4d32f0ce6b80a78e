# ruff: noqa: ARG002 - the arguments are the contracts'
"""The window that holds everything, and the triggers made for it."""

from __future__ import annotations

from typing import Any

from opchain.runtime.windows.assigners import WindowAssigner
from opchain.runtime.windows.triggers import Trigger, TriggerResult
from opchain.runtime.windows.window import GlobalWindow, Window
from opchain.runtime.windows.window_serializers import GlobalWindowSerializer


class NeverTrigger(Trigger[Any, Window]):
    """Never fires."""

    def on_element(
        self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Goes on."""
        return TriggerResult.CONTINUE

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
