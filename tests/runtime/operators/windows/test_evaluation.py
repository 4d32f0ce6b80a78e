from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.record_functions import AggregateFunction
from opchain.runtime.functions.window import (
    AllWindowFunction,
    PassThroughWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    TimeWindow,
    WindowFunction,
)
from opchain.runtime.operators.windows.evaluation import has_clear
from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.windows.time_windows import TumblingEventTimeWindows
from opchain.runtime.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness

    Windows = Callable[..., KeyedOneInputOperatorHarness]

TEN, FIRST, SIDE = TumblingEventTimeWindows.of(10), TimeWindow(0, 10), OutputTag("side")


class SameTrigger(EventTimeTrigger):
    """The default trigger in a subclass, for which the general operator is chosen."""


TRIGGERS = pytest.mark.parametrize("trigger", [EventTimeTrigger(), SameTrigger()])


class Apply(WindowFunction[Any, Any, str, Any]):
    def apply(self, key: str, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(key, window, list(inputs))]


class ApplyAll(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [(window, list(inputs))]


class Process(ProcessWindowFunction[Any, Any, str, Any]):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield key, context.window(), list(elements)


class ProcessAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield context.window(), list(elements)


class Count(AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int | None:  # type: ignore[override]
        return accumulator if accumulator > 1 else None

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


RECORDS = [("a", 1), ("a", 2)]


@TRIGGERS
@pytest.mark.parametrize(
    ("shape", "result"),
    [
        ({"function": Apply()}, ("a", FIRST, RECORDS)),
        ({"function": Apply().apply}, ("a", FIRST, RECORDS)),
        ({"function": lambda _key, _window, records: [len(records)]}, 2),
        ({"function": Process()}, ("a", FIRST, RECORDS)),
        ({"function": ApplyAll(), "is_all": True}, (FIRST, RECORDS)),
        ({"function": lambda window, _records: [window], "is_all": True}, FIRST),
        ({"function": ProcessAll(), "is_all": True}, (FIRST, RECORDS)),
        ({"reduce": lambda a, b: a + b}, ("a", 1, "a", 2)),
        ({"aggregate": Count()}, 2),
        ({"aggregate": Count(), "function": Apply()}, ("a", FIRST, [2])),
        ({"aggregate": Count(), "function": Process()}, ("a", FIRST, [2])),
        ({"aggregate": Count(), "function": ProcessAll(), "is_all": True}, (FIRST, [2])),
        ({"reduce": lambda a, b: a + b, "function": Apply()}, ("a", FIRST, [("a", 1, "a", 2)])),
        ({"reduce": lambda a, b: a + b, "function": PassThroughWindowFunction()}, ("a", 1, "a", 2)),
    ],
)
def test_each_kind_of_function_gets_its_arguments(
    windows: Windows, trigger: Any, shape: dict[str, Any], result: Any
) -> None:
    with windows(TEN, trigger, **shape) as harness:
        harness.process_elements((record, 5) for record in RECORDS)
        harness.process_watermark(9)
        assert harness.records() == [(result, 9)]


@TRIGGERS
def test_a_window_function_may_return_none(windows: Windows, trigger: Any) -> None:
    for shape in ({"function": lambda _key, _window, _records: None}, {"aggregate": Count()}):
        with windows(TEN, trigger, **shape) as harness:
            harness.process_element(("a", 1), 5)
            harness.process_watermark(9)
            assert harness.records() == []


class ToTheSide(ProcessWindowFunction[Any, Any, str, Any]):
    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        yield SIDE, key
        yield len(list(elements))


@TRIGGERS
def test_side_outputs_have_the_last_timestamp_of_the_window(windows: Windows, trigger: Any) -> None:
    with windows(TEN, trigger, function=ToTheSide()) as harness:
        harness.process_elements([(("a", 1), 5), (("b", 1), 12)])
        harness.end_input()
        assert harness.records(SIDE) == [("a", 9), ("b", 19)]
        assert harness.records() == [(1, 9), (1, 19)]


class Clears(Process):
    def __init__(self) -> None:
        self.cleared: list[Any] = []

    def clear(self, context: Any) -> None:
        self.cleared.append(context.window())


@TRIGGERS
@pytest.mark.parametrize("lateness", [0, 5])
def test_clear_is_called_when_a_window_expires(
    windows: Windows, trigger: Any, lateness: int
) -> None:
    function = Clears()
    with windows(TEN, trigger, function=function, allowed_lateness_ms=lateness) as harness:
        harness.process_elements([(("a", 1), 5), (("b", 1), 5), (("a", 1), 15)])
        harness.process_watermark(9)
        harness.process_watermark(9 + lateness)
        assert function.cleared == [FIRST, FIRST]


def test_has_clear_is_true_if_clear_is_overridden() -> None:
    assert has_clear(Clears())
    for function in (Process(), ProcessAll(), Apply(), len, None):
        assert not has_clear(function)
