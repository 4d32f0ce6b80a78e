from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.datastream.functions import FilterFunction, FlatMapFunction, MapFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.testing.operator_harness import (
    KeyedOneInputOperatorHarness,
    OneInputOperatorHarness,
)


class Twice(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return 2 * value


class Even(FilterFunction[int]):
    def filter(self, value: int) -> bool:
        return value % 2 == 0


class Count(FlatMapFunction[int, int]):
    def flat_map(self, value: int) -> Any:
        yield from range(value)


@pytest.mark.parametrize(
    ("spec", "results"),
    [
        (specs.MapSpec(Twice()), [6, 4, 0]),
        (specs.MapSpec(lambda x: 2 * x), [6, 4, 0]),
        (specs.FilterSpec(Even()), [2, 0]),
        (specs.FilterSpec(lambda x: x % 2 == 0), [2, 0]),
        (specs.FlatMapSpec(Count()), [0, 1, 2, 0, 1]),
        (specs.FlatMapSpec(range), [0, 1, 2, 0, 1]),
    ],
)
def test_functions_and_callables_give_the_same_records(spec: Any, results: list[int]) -> None:
    with OneInputOperatorHarness(spec) as harness:
        harness.process_elements([(3, 30), (2, 20), (0, 0)])
        assert harness.values() == results
        assert {record.timestamp for record in harness.records()} <= {30, 20, 0}


def test_records_yielded_before_a_failure_are_emitted() -> None:
    def fails_late(value: int) -> Any:
        yield value
        raise ValueError("late")

    with OneInputOperatorHarness(specs.FlatMapSpec(fails_late)) as harness:
        with pytest.raises(ValueError, match="late"):
            harness.process_element(1)
        assert harness.values() == [1]


class Running(MapFunction[tuple[str, int], tuple[str, int]]):
    """Sums per key."""

    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def map(self, value: tuple[str, int]) -> tuple[str, int]:
        self.sum.update((self.sum.value() or 0) + value[1])
        return value[0], self.sum.value() or 0


def test_a_rich_function_uses_the_state_of_the_key_of_its_record() -> None:
    with KeyedOneInputOperatorHarness(Running(), lambda pair: pair[0]) as harness:
        for record in (("a", 1), ("b", 10), ("a", 2)):
            harness.process_element(record)
        assert harness.values() == [("a", 1), ("b", 10), ("a", 3)]
        assert harness.operator.current_key == "a"


def test_for_a_plain_callable_no_key_is_computed() -> None:
    """So a record with an invalid key does no harm."""
    spec = specs.MapSpec(lambda x: x)
    with KeyedOneInputOperatorHarness(spec, lambda x: 1 // x) as harness:
        harness.process_element(0)
        assert harness.values() == [0]
        assert harness.operator.current_key is None
