from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.function import RuntimeContext
from opchain.runtime.functions.record_functions import AggregateFunction
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.functions.window import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    TimeWindow,
)
from opchain.runtime.windows.assigners import WindowAssigner
from opchain.runtime.windows.time_windows import TumblingEventTimeWindows
from opchain.runtime.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness

    Windows = Callable[..., KeyedOneInputOperatorHarness]

TEN = TumblingEventTimeWindows.of(10)


class SameTrigger(EventTimeTrigger):
    """The default trigger in a subclass, for which the general operator is chosen."""


TRIGGERS = pytest.mark.parametrize("trigger", [EventTimeTrigger(), SameTrigger()])
FIRINGS = ValueStateDescriptor("firings")


class CountFirings(ProcessWindowFunction[Any, Any, str, Any]):
    """How often this window fired, and how often all windows of the key fired."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        counts = []
        for states in (context.window_state(), context.global_state()):
            state = states.get_state(FIRINGS)
            state.update((state.value() or 0) + 1)
            counts.append(state.value())
        yield key, context.window().start, *counts

    def clear(self, context: Any) -> None:
        context.window_state().get_state(FIRINGS).clear()


@TRIGGERS
def test_window_state_and_global_state_of_a_key_are_separate(
    windows: Windows, trigger: Any
) -> None:
    with windows(TEN, trigger, function=CountFirings(), allowed_lateness_ms=15) as harness:
        harness.process_elements([(("a", 1), 5), (("b", 1), 5), (("a", 1), 15)])
        harness.process_watermark(9)
        harness.process_element(("a", 2), 6)
        harness.process_watermark(19)
        harness.process_element(("a", 3), 7)
        assert harness.values() == [
            ("a", 0, 1, 1),
            ("b", 0, 1, 1),
            ("a", 0, 2, 2),
            ("a", 10, 1, 3),
            ("a", 0, 3, 4),
        ]
        harness.end_input()
        assert harness.state_entry_count() == 2  # one for each key


class Clocks(ProcessWindowFunction[Any, Any, str, Any]):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield context.current_watermark(), context.current_processing_time()


@TRIGGERS
def test_the_context_has_watermark_and_processing_time(windows: Windows, trigger: Any) -> None:
    with windows(TEN, trigger, function=Clocks()) as harness:
        harness.set_processing_time(77)
        harness.process_element(("a", 1), 5)
        harness.process_watermark(12)
        assert harness.values() == [(12, 77)]


class Text(AggregateFunction[int, str, str]):
    def create_accumulator(self) -> str:
        return ""

    def add(self, value: int, accumulator: str) -> str:
        return f"{accumulator}{value}"

    def get_result(self, accumulator: str) -> str:
        return accumulator

    def merge(self, acc_a: str, acc_b: str) -> str:
        return acc_a + acc_b


KINDS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "get_state": (ValueStateDescriptor("value"), lambda state: state.update(1) or state.value()),
    "get_list_state": (
        ListStateDescriptor("list"),
        lambda state: state.add(1) or list(state.get()),
    ),
    "get_map_state": (MapStateDescriptor("map"), lambda state: state.put(1, 2) or state.get(1)),
    "get_reducing_state": (
        ReducingStateDescriptor("sum", lambda a, b: a + b),
        lambda state: state.add(1) or state.get(),
    ),
    "get_aggregating_state": (
        AggregatingStateDescriptor("text", Text()),
        lambda state: state.add(1) or state.get(),
    ),
}


class EachKind(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        for states in (context.window_state(), context.global_state()):
            yield {
                getter: use(getattr(states, getter)(descriptor))
                for getter, (descriptor, use) in KINDS.items()
            }


@TRIGGERS
def test_all_kinds_of_state_are_available(windows: Windows, trigger: Any) -> None:
    with windows(TEN, trigger, function=EachKind(), is_all=True) as harness:
        harness.process_element(("a", 1), 5)
        harness.process_watermark(9)
        once = {
            "get_state": 1,
            "get_list_state": [1],
            "get_map_state": 2,
            "get_reducing_state": 1,
            "get_aggregating_state": "1",
        }
        assert harness.values() == [once, once]


class AsksTheContext(WindowAssigner[Any, TimeWindow]):
    """Windows as long as the processing time, whose start is the number of earlier records of the key."""

    def assign_windows(self, element: Any, timestamp: int, context: Any) -> list[TimeWindow]:
        runtime_context = context.get_runtime_context()
        assert isinstance(runtime_context, RuntimeContext)
        count = runtime_context.get_state(ValueStateDescriptor("count"))
        before = count.value() or 0
        count.update(before + 1)
        return [TimeWindow(before, before + context.get_current_processing_time())]

    def get_default_trigger(self, env: Any) -> EventTimeTrigger:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


def test_a_window_assigner_may_use_the_clock_and_keyed_state(windows: Windows) -> None:
    with windows(AsksTheContext()) as harness:
        harness.set_processing_time(5)
        harness.process_elements([(("a", 1), 0), (("a", 2), 0), (("b", 3), 0)])
        harness.end_input()
        assert sorted(harness.values()) == [
            ("a", TimeWindow(0, 5), [1]),
            ("a", TimeWindow(1, 6), [2]),
            ("b", TimeWindow(0, 5), [3]),
        ]
