from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.functions.window import (
    AllWindowFunction,
    PassThroughAllWindowFunction,
    PassThroughWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    TimeWindow,
    WindowFunction,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

WINDOW = TimeWindow(0, 10)


class Count(WindowFunction[str, tuple[str, int], str, TimeWindow]):
    def apply(self, key: str, window: TimeWindow, inputs: Iterable[str]) -> list[tuple[str, int]]:
        return [(key, len(list(inputs)))]


class CountWithContext(ProcessWindowFunction):  # type: ignore[type-arg]
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, len(elements)


def test_functions_work_with_and_without_type_parameters() -> None:
    context: Any = None
    assert Count().apply("k", WINDOW, ["a", "b"]) == [("k", 2)]
    assert list(CountWithContext().process("k", context, ["a"])) == [("k", 1)]


def test_pass_through_window_function_returns_the_elements() -> None:
    assert list(PassThroughWindowFunction[int]().apply("k", WINDOW, [1, 2])) == [1, 2]
    assert list(PassThroughAllWindowFunction[int]().apply(WINDOW, [1, 2])) == [1, 2]


@pytest.mark.parametrize(
    ("context", "methods"),
    [
        (
            ProcessWindowFunction.Context,
            {
                "window",
                "window_state",
                "global_state",
                "current_processing_time",
                "current_watermark",
            },
        ),
        (ProcessAllWindowFunction.Context, {"window", "window_state", "global_state"}),
    ],
)
def test_a_context_has_the_abstract_methods_of_pyflink(context: Any, methods: set[str]) -> None:
    assert context.__abstractmethods__ == methods


def test_clear_is_optional() -> None:
    class Nothing(ProcessAllWindowFunction[Any, Any, Any]):
        def process(self, context: Any, elements: Any) -> None:
            return None

    context: Any = None
    Nothing().clear(context)
    CountWithContext().clear(context)


@pytest.mark.parametrize("kind", [WindowFunction, AllWindowFunction])
def test_window_functions_are_abstract(kind: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()
