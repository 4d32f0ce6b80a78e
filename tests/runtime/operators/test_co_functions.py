from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.datastream.functions import CoFlatMapFunction, CoMapFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.testing.operator_harness import (
    KeyedTwoInputOperatorHarness,
    TwoInputOperatorHarness,
)


class Sides(CoMapFunction[int, str, Any]):
    def map1(self, value: int) -> Any:
        return value or None

    def map2(self, value: str) -> Any:
        return value or None


class Spread(CoFlatMapFunction[int, str, Any]):
    def flat_map1(self, value: int) -> Any:
        return range(value) if value else None

    def flat_map2(self, value: str) -> Any:
        yield from value


class Joined(CoMapFunction[Any, Any, Any]):
    """The last value of the other input with the same key."""

    def open(self, runtime_context: Any) -> None:
        self.left = runtime_context.get_state(ValueStateDescriptor("l", Types.LONG()))
        self.right = runtime_context.get_state(ValueStateDescriptor("r", Types.LONG()))

    def map1(self, value: Any) -> Any:
        self.left.update(value[1])
        return value[0], "left", self.right.value()

    def map2(self, value: Any) -> Any:
        self.right.update(value[1])
        return value[0], "right", self.left.value()


@pytest.mark.parametrize(
    ("function", "results"),
    [(Sides(), [(2, 10), ("ab", 20)]), (Spread(), [(0, 10), (1, 10), ("a", 20), ("b", 20)])],
)
def test_both_methods_emit_and_none_emits_nothing(function: Any, results: list[Any]) -> None:
    with TwoInputOperatorHarness(function) as harness:
        harness.process_element1(2, 10)
        harness.process_element1(0, 11)
        harness.process_element2("ab", 20)
        harness.process_element2("", 21)
        assert harness.records() == results
        assert harness.operator.current_key is None


def test_both_inputs_share_the_state_of_a_key() -> None:
    first = lambda pair: pair[0]  # noqa: E731
    with KeyedTwoInputOperatorHarness(Joined(), first, first) as harness:
        harness.process_element1(("a", 1))
        harness.process_element2(("a", 2))
        harness.process_element2(("b", 3))
        harness.process_element1(("a", 4))
        harness.process_element1(("b", 5))
        assert harness.values() == [
            *(("a", "left", None), ("a", "right", 1), ("b", "right", None)),
            *(("a", "left", 2), ("b", "left", 3)),
        ]
        assert harness.operator.current_key == "b"
