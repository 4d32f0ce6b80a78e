from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import (
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.windows.time_windows import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from opchain.runtime.windows.triggers import Trigger, TriggerResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness

    Windows = Callable[..., KeyedOneInputOperatorHarness]

COUNT = ReducingStateDescriptor("count", lambda a, b: a + b)
LAST = ValueStateDescriptor("last")


class Scripted(Trigger[Any, Any]):
    """Calls the given `on_element` with the context, and records the timers that fire."""

    def __init__(self, on_element: Callable[[Any], Any], on_merge: Any = None) -> None:
        self.script = on_element
        self.merge_script = on_merge
        self.notes: list[Any] = []

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> TriggerResult:
        self.notes.append(self.script(ctx))
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        self.notes.append(("clock", time, window))
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: Any) -> TriggerResult:
        self.notes.append(("watermark", time, window))
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: Any) -> None:
        if self.merge_script is not None:
            self.merge_script(ctx)

    def clear(self, window: Any, ctx: Any) -> None:
        self.notes.append(("clear", window))


TEN, FIRST = TumblingEventTimeWindows.of(10), TimeWindow(0, 10)


def test_the_context_has_both_clocks_and_the_metric_group(windows: Windows) -> None:
    trigger = Scripted(
        lambda ctx: (
            ctx.get_current_watermark(),
            ctx.get_current_processing_time(),
            ctx.get_metric_group().counter("asked").inc(),
        )
    )
    with windows(TEN, trigger) as harness:
        harness.set_processing_time(7)
        harness.process_watermark(3)
        harness.process_element(("a", 1), 5)
        assert trigger.notes == [(3, 7, None)]
        assert harness.operator.context.metrics.snapshot()["asked"] == 1


def test_timers_of_both_clocks_belong_to_the_window(windows: Windows) -> None:
    def on_element(ctx: Any) -> None:
        ctx.register_event_time_timer(4)
        ctx.register_event_time_timer(6)
        ctx.register_processing_time_timer(50)
        ctx.register_processing_time_timer(60)
        ctx.delete_event_time_timer(6)
        ctx.delete_processing_time_timer(60)

    trigger = Scripted(on_element)
    with windows(SlidingEventTimeWindows.of(10, 5), trigger) as harness:
        harness.process_element(("a", 1), 5)
        trigger.notes.clear()
        harness.process_watermark(4)
        harness.set_processing_time(100)
        latest, earliest = TimeWindow(5, 15), TimeWindow(0, 10)
        assert trigger.notes == [
            ("watermark", 4, earliest),
            ("watermark", 4, latest),
            ("clock", 50, earliest),
            ("clock", 50, latest),
        ]
        assert harness.values() == [("a", earliest, [1]), ("a", latest, [1])]


def test_trigger_state_is_kept_by_key_and_window(windows: Windows) -> None:
    def on_element(ctx: Any) -> Any:
        last = ctx.get_partitioned_state(LAST)
        before = last.value()
        last.update((before or 0) + 1)
        return before

    trigger = Scripted(on_element)
    with windows(TEN, trigger) as harness:
        for key, time in (("a", 1), ("a", 2), ("b", 3), ("a", 12), ("a", 4)):
            harness.process_element((key, 0), time)
        assert trigger.notes == [None, 1, None, None, 2]


def test_trigger_state_of_merged_windows_is_merged(windows: Windows) -> None:
    def on_element(ctx: Any) -> Any:
        state = ctx.get_partitioned_state(COUNT)
        state.add(1)
        return state.get()

    trigger = Scripted(on_element, lambda ctx: ctx.merge_partitioned_state(COUNT))
    with windows(EventTimeSessionWindows.with_gap(10), trigger) as harness:
        for time in (0, 20, 21, 10):
            harness.process_element(("a", time), time)
        counts = [note for note in trigger.notes if isinstance(note, int)]
        assert counts == [1, 1, 2, 4]
        assert [note[1] for note in trigger.notes if isinstance(note, tuple)] == [
            TimeWindow(20, 30),
            TimeWindow(20, 31),
            TimeWindow(0, 10),
        ]


def test_trigger_state_that_cannot_be_merged_is_refused(windows: Windows) -> None:
    trigger = Scripted(
        lambda ctx: ctx.get_partitioned_state(LAST).update(1),
        lambda ctx: ctx.merge_partitioned_state(LAST),
    )
    with windows(EventTimeSessionWindows.with_gap(10), trigger) as harness:
        harness.process_element(("a", 1), 1)
        with pytest.raises(StateError, match="can't be merged"):
            harness.process_element(("a", 1), 2)


def test_clear_of_the_trigger_is_called_when_the_window_expires(windows: Windows) -> None:
    trigger = Scripted(lambda _: None)
    with windows(TEN, trigger) as harness:
        harness.process_element(("a", 1), 1)
        harness.process_watermark(9)
        assert trigger.notes == [None, ("watermark", 9, FIRST), ("clear", FIRST)]
