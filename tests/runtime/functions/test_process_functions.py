from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.process_functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Iterator

LATE = OutputTag[int]("late")


class Split(ProcessFunction[int, str]):
    def process_element(
        self, value: int, ctx: ProcessFunction.Context
    ) -> Iterator[str | tuple[OutputTag[int], int]]:
        if value < 0:
            yield LATE, value
        else:
            yield str(value)


class Silent(KeyedProcessFunction):  # type: ignore[type-arg]
    def process_element(self, value: Any, ctx: Any) -> Any:
        pass


def test_process_element_yields_records_and_side_outputs() -> None:
    context: Any = None
    split = Split()
    assert [*split.process_element(1, context), *split.process_element(-1, context)] == [
        "1",
        (LATE, -1),
    ]


def test_process_element_may_return_none_and_on_timer_is_optional() -> None:
    context: Any = None
    assert Silent().process_element(1, context) is None
    assert Silent().on_timer(1, context) is None


CONTEXTS: list[tuple[Any, set[str]]] = [
    (ProcessFunction.Context, {"timer_service", "timestamp"}),
    (KeyedProcessFunction.Context, {"timer_service", "timestamp", "get_current_key"}),
    (
        KeyedProcessFunction.OnTimerContext,
        {"timer_service", "timestamp", "get_current_key", "time_domain"},
    ),
    (CoProcessFunction.Context, {"timer_service", "timestamp"}),
    (KeyedCoProcessFunction.Context, {"timer_service", "timestamp", "get_current_key"}),
    (
        KeyedCoProcessFunction.OnTimerContext,
        {"timer_service", "timestamp", "get_current_key", "time_domain"},
    ),
]


@pytest.mark.parametrize(("context", "methods"), CONTEXTS)
def test_a_context_has_the_abstract_methods_of_pyflink(context: Any, methods: set[str]) -> None:
    assert context.__abstractmethods__ == methods


@pytest.mark.parametrize("function", [KeyedProcessFunction, KeyedCoProcessFunction])
def test_an_on_timer_context_is_a_context(function: Any) -> None:
    assert issubclass(function.OnTimerContext, function.Context)


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        (ProcessFunction, {"process_element"}),
        (KeyedProcessFunction, {"process_element"}),
        (CoProcessFunction, {"process_element1", "process_element2"}),
        (KeyedCoProcessFunction, {"process_element1", "process_element2"}),
    ],
)
def test_each_function_class_has_its_abstract_methods_only(kind: Any, methods: set[str]) -> None:
    assert kind.__abstractmethods__ == methods
