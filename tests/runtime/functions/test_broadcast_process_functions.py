from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.process_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)

CLOCKS = {"timestamp", "current_processing_time", "current_watermark", "get_broadcast_state"}
CONTEXTS: list[tuple[Any, set[str]]] = [
    (BroadcastProcessFunction.Context, CLOCKS),
    (BroadcastProcessFunction.ReadOnlyContext, CLOCKS),
    (KeyedBroadcastProcessFunction.Context, CLOCKS | {"apply_to_keyed_state"}),
    (
        KeyedBroadcastProcessFunction.ReadOnlyContext,
        CLOCKS | {"timer_service", "get_current_key"},
    ),
    (
        KeyedBroadcastProcessFunction.OnTimerContext,
        CLOCKS | {"timer_service", "get_current_key", "time_domain"},
    ),
]


@pytest.mark.parametrize(("context", "methods"), CONTEXTS)
def test_a_context_has_the_abstract_methods_of_pyflink(context: Any, methods: set[str]) -> None:
    assert context.__abstractmethods__ == methods


class Rules(BroadcastProcessFunction[str, str, str]):
    def process_element(self, value: str, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: str, ctx: Any) -> Any:
        pass


class KeyedRules(KeyedBroadcastProcessFunction):  # type: ignore[type-arg]
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        pass


@pytest.mark.parametrize("kind", [Rules, KeyedRules])
def test_functions_work_with_and_without_type_parameters(kind: Any) -> None:
    function = kind()
    assert isinstance(function, BaseBroadcastProcessFunction)
    assert list(function.process_element("a", None)) == ["a"]
    assert function.process_broadcast_element("a", None) is None


def test_on_timer_is_optional() -> None:
    context: Any = None
    assert KeyedRules().on_timer(1, context) is None


@pytest.mark.parametrize("kind", [BroadcastProcessFunction, KeyedBroadcastProcessFunction])
def test_both_process_methods_are_abstract(kind: Any) -> None:
    assert kind.__abstractmethods__ == {"process_element", "process_broadcast_element"}
