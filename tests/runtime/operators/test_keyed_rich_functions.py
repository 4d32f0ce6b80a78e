"""Rich map, filter, flat map, reduce and co-functions on keyed streams use the state of their key."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

from opchain.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    ReduceFunction,
)
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import ValueStateDescriptor
from opchain.testing import (
    KeyedOneInputOperatorHarness,
    KeyedTwoInputOperatorHarness,
    OneInputOperatorHarness,
)

if TYPE_CHECKING:
    from opchain.runtime.functions.function import RuntimeContext

RECORDS = [("a", 1), ("b", 1), ("a", 2), (1, 0), (True, 0), (1, 0)]
COUNTS = [1, 1, 2, 1, 1, 2]


class Counting:
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def counted(self) -> int:
        self.count.update((self.count.value() or 0) + 1)
        number: int = self.count.value()
        return number


class CountingMap(Counting, MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return self.counted()


class CountingFlatMap(Counting, FlatMapFunction[Any, Any]):
    def flat_map(self, value: Any) -> Any:
        yield self.counted()


class FirstOnly(Counting, FilterFunction[Any]):
    def filter(self, value: Any) -> bool:
        return self.counted() == 1


class CountingCoMap(Counting, CoMapFunction[Any, Any, Any]):
    def map1(self, value: Any) -> Any:
        return self.counted()

    map2 = map1


class CountingCoFlatMap(Counting, CoFlatMapFunction[Any, Any, Any]):
    def flat_map1(self, value: Any) -> Any:
        yield self.counted()

    flat_map2 = flat_map1


class CountingReduce(Counting, ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return (value2[0], self.counted())


@pytest.mark.parametrize("function", [CountingMap(), CountingFlatMap()])
def test_each_key_has_its_own_count(function: Any) -> None:
    with KeyedOneInputOperatorHarness(function, itemgetter(0)) as harness:
        harness.process_elements([(record, None) for record in RECORDS])
        assert harness.values() == COUNTS


def test_a_reduce_function_may_use_keyed_state() -> None:
    with KeyedOneInputOperatorHarness(CountingReduce(), itemgetter(0)) as harness:
        harness.process_elements([(record, None) for record in RECORDS])
        assert harness.values() == [("a", 1), ("b", 1), ("a", 1), (1, 0), (True, 0), (1, 1)]


def test_a_filter_function_may_use_keyed_state() -> None:
    with KeyedOneInputOperatorHarness(FirstOnly(), itemgetter(0)) as harness:
        harness.process_elements([(record, 7) for record in RECORDS])
        assert harness.records() == [
            (record, 7) for record, count in zip(RECORDS, COUNTS, strict=True) if count == 1
        ]


@pytest.mark.parametrize("function", [CountingCoMap(), CountingCoFlatMap()])
def test_connected_keyed_streams_share_their_state(function: Any) -> None:
    with KeyedTwoInputOperatorHarness(function, itemgetter(0), itemgetter(1)) as harness:
        harness.process_element1(("a", "x"))
        harness.process_element2(("x", "a"))
        harness.process_element2(("a", "x"))
        assert harness.values() == [1, 2, 1]


def test_without_a_key_these_functions_are_refused() -> None:
    with pytest.raises(StateError, match=r"'Map' \(test harness\) uses the value state 'count'"):
        OneInputOperatorHarness(CountingMap()).open()
