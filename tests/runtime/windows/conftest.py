"""A simple window operator: clocks, timers and state for one trigger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.state import ReducingState, ValueState
from opchain.runtime.functions.state_descriptors import ReducingStateDescriptor, StateDescriptor
from opchain.runtime.time import MIN_LONG_VALUE
from opchain.runtime.windows.triggers import Trigger, TriggerResult

if TYPE_CHECKING:
    from opchain.runtime.functions.window import Window


class MemoryValue(ValueState[Any]):
    def __init__(self) -> None:
        self.stored: Any = None

    def value(self) -> Any:
        return self.stored

    def update(self, value: Any) -> None:
        self.stored = value

    def clear(self) -> None:
        self.stored = None


class MemoryReducing(ReducingState[Any]):
    def __init__(self, descriptor: ReducingStateDescriptor[Any]) -> None:
        self.reduce = descriptor.get_reduce_function().reduce
        self.stored: Any = None

    def get(self) -> Any:
        return self.stored

    def add(self, value: Any) -> None:
        self.stored = value if self.stored is None else self.reduce(self.stored, value)

    def clear(self) -> None:
        self.stored = None


@dataclass
class Panes:
    """Calls one trigger for the windows of one key, and records its calls."""

    trigger: Trigger[Any, Any]
    watermark: int = MIN_LONG_VALUE
    now: int = 0
    event_timers: set[tuple[int, Window]] = field(default_factory=set)
    processing_timers: set[tuple[int, Window]] = field(default_factory=set)
    states: dict[tuple[Window, str], Any] = field(default_factory=dict)
    merged_away: set[Window] = field(default_factory=set)

    def element(self, window: Window, timestamp: int = 0, value: Any = None) -> TriggerResult:
        return self.trigger.on_element(value, timestamp, window, Context(self, window))

    def elements(self, window: Window, *timestamps: int) -> list[str]:
        return [self.element(window, timestamp).name for timestamp in timestamps]

    def advance_watermark(self, to: int) -> list[tuple[int, str]]:
        """(time, result) of the timers that fire, in order."""
        self.watermark = to
        return self._fire(self.event_timers, to, self.trigger.on_event_time)

    def advance_clock(self, to: int) -> list[tuple[int, str]]:
        self.now = to
        return self._fire(self.processing_timers, to, self.trigger.on_processing_time)

    def _fire(self, timers: set[tuple[int, Window]], to: int, ask: Any) -> list[tuple[int, str]]:
        fired = []
        while due := sorted(timer for timer in timers if timer[0] <= to):
            time, window = due[0]
            timers.remove(due[0])
            if (
                window not in self.merged_away
            ):  # the operator ignores timers of windows that it does not have
                fired.append((time, ask(time, window, Context(self, window)).name))
        return fired

    def merge(self, into: Window, *windows: Window) -> None:
        """Merges like the window operator, and clears the windows that are gone."""
        self.trigger.on_merge(into, Context(self, into, windows))
        for window in windows:
            if window != into:
                self.clear(window)
                self.merged_away.add(window)

    def clear(self, window: Window) -> None:
        self.trigger.clear(window, Context(self, window))

    def is_clean(self) -> bool:
        """Whether no timer and no state is left."""
        held = [state for state in self.states.values() if state.stored is not None]
        return not (held or self.event_timers or self.processing_timers)


@dataclass
class Context(Trigger.OnMergeContext):
    panes: Panes
    window: Window
    merged: tuple[Window, ...] = ()

    def get_current_processing_time(self) -> int:
        return self.panes.now

    def get_metric_group(self) -> None:
        return None

    def get_current_watermark(self) -> int:
        return self.panes.watermark

    def register_processing_time_timer(self, time: int) -> None:
        self.panes.processing_timers.add((time, self.window))

    def register_event_time_timer(self, time: int) -> None:
        self.panes.event_timers.add((time, self.window))

    def delete_processing_time_timer(self, time: int) -> None:
        self.panes.processing_timers.discard((time, self.window))

    def delete_event_time_timer(self, time: int) -> None:
        self.panes.event_timers.discard((time, self.window))

    def get_partitioned_state(self, state_descriptor: StateDescriptor[Any]) -> Any:
        return self._state(self.window, state_descriptor)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor[Any]) -> None:
        held = [self._state(window, state_descriptor) for window in self.merged]
        values = [state.stored for state in held if state.stored is not None]
        for state in held:
            state.clear()
        for value in values:
            self._state(self.window, state_descriptor).add(value)

    def _state(self, window: Window, descriptor: StateDescriptor[Any]) -> Any:
        key = (window, descriptor.name)
        if key not in self.panes.states:
            self.panes.states[key] = (
                MemoryReducing(descriptor)
                if isinstance(descriptor, ReducingStateDescriptor)
                else MemoryValue()
            )
        return self.panes.states[key]


@pytest.fixture(scope="session")
def panes() -> type[Panes]:
    return Panes
