from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.record_functions import AggregateFunction, ReduceFunction
from opchain.runtime.functions.window import WindowFunction
from opchain.runtime.testing.operator_harness import ManualClock
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.windows.time_windows import TumblingEventTimeWindows, WindowStagger
from opchain.runtime.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness

    Windows = Callable[..., KeyedOneInputOperatorHarness]

TEN = TumblingEventTimeWindows.of(10)


class SameTrigger(EventTimeTrigger):
    """The default trigger in a subclass, for which the general operator is chosen."""


TRIGGERS = pytest.mark.parametrize("trigger", [EventTimeTrigger(), SameTrigger()])


class Notes:
    """Records the calls of open and close."""

    def __init__(self) -> None:
        self.life: list[str] = []

    def open(self, runtime_context: Any) -> None:
        self.life.append(f"open in {runtime_context.get_task_name()}")

    def close(self) -> None:
        self.life.append("close")


class Reduce(Notes, ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1


class Aggregate(Notes, AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        if value[1] == 0:
            raise ZeroDivisionError
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        if accumulator == 2:
            raise ZeroDivisionError
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Apply(Notes, WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return inputs


@TRIGGERS
@pytest.mark.parametrize("incremental", ["reduce", "aggregate", None])
def test_functions_are_opened_and_closed_once(
    windows: Windows, trigger: Any, incremental: str | None
) -> None:
    functions: dict[str, Any] = {"function": Apply()}
    if incremental is not None:
        functions[incremental] = Reduce() if incremental == "reduce" else Aggregate()
    with windows(TEN, trigger, **functions) as harness:
        harness.process_element(("a", 1), 5)
        harness.end_input()
        assert len(harness.values()) == 1
    for function in functions.values():
        assert function.life == ["open in Window", "close"]


@TRIGGERS
def test_the_current_key_is_known_to_error_messages(windows: Windows, trigger: Any) -> None:
    """At a record that `add` refuses, and at a window whose result fails."""
    with windows(TEN, trigger, aggregate=Aggregate()) as harness:
        assert harness.operator.current_key is None
        with pytest.raises(ZeroDivisionError):
            harness.process_element((1.0, 0), 5)
        assert repr(harness.operator.current_key) == "1.0"
    with windows(TEN, trigger, aggregate=Aggregate()) as harness:
        harness.process_elements([((key, 1), 5) for key in ("a", "b", "b", "c")])
        with pytest.raises(ZeroDivisionError):
            harness.process_watermark(9)
        assert harness.operator.current_key == "b"


def test_a_window_stagger_offset_survives_a_restore(windows: Any) -> None:
    def staggered(now: int, snapshots: Any = None) -> Any:
        assigner = TumblingEventTimeWindows.of(1000, window_stagger=WindowStagger.NATURAL)
        clock = ManualClock(now)
        return windows(assigner, harness={"clock": clock, "snapshots": snapshots})

    with staggered(5300) as running:
        running.process_element(("a", 1), 400)
        snapshot = running.snapshot()
    with staggered(5900, [snapshot]) as running:
        running.process_element(("a", 2), 1200)
        running.process_watermark(MAX_LONG_VALUE)
        assert [window.start for _, window, _ in running.values()] == [300]
