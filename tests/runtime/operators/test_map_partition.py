from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.record_functions import MapPartitionFunction
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.testing import (
    EmittedWatermark,
    KeyedOneInputOperatorHarness,
    OneInputOperatorHarness,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


class Sum(MapPartitionFunction[Any, Any]):
    def map_partition(self, values: Iterable[Any]) -> Any:
        values = list(values)
        if values:
            yield values[0][0], sum(number for _, number in values)


class Nothing(MapPartitionFunction[Any, Any]):
    def map_partition(self, values: Iterable[Any]) -> Any:
        return None


def test_a_partition_is_evaluated_at_the_end_of_input() -> None:
    with OneInputOperatorHarness(Sum()) as harness:
        harness.process_elements([(("a", 1), 5), (("b", 2), 6)])
        harness.process_watermark(10)
        assert harness.records() == []
        harness.end_input()
        assert harness.records() == [(("a", 3), None)]


def test_an_empty_partition_is_evaluated_too() -> None:
    calls: list[list[Any]] = []

    class Notes(MapPartitionFunction[Any, Any]):
        def map_partition(self, values: Iterable[Any]) -> Any:
            calls.append(list(values))

    with OneInputOperatorHarness(Notes()) as harness:
        harness.end_input()
    assert calls == [[]]


def test_values_can_be_iterated_once() -> None:
    class Twice(MapPartitionFunction[Any, Any]):
        def map_partition(self, values: Iterable[Any]) -> Any:
            yield len(list(values)), len(list(values))

    with OneInputOperatorHarness(Twice()) as harness:
        harness.process_element(("a", 1))
        harness.end_input()
        assert harness.values() == [(1, 0)]


def test_each_key_is_evaluated_before_the_last_watermark_is_emitted() -> None:
    with KeyedOneInputOperatorHarness(Sum(), itemgetter(0)) as harness:
        harness.process_elements([(("b", 1), 5), (("a", 2), None), (("b", 3), 6)])
        harness.process_watermark(10)
        harness.clear_output()
        harness.end_input()
        assert harness.elements() == [
            (("b", 4), MAX_LONG_VALUE),
            (("a", 2), MAX_LONG_VALUE),
            EmittedWatermark(MAX_LONG_VALUE),
        ]
        assert harness.state_entry_count() == 0


def test_collected_records_of_a_key_survive_a_restart() -> None:
    with KeyedOneInputOperatorHarness(Sum(), itemgetter(0)) as before:
        before.process_element(("a", 1))
        snapshot = before.snapshot()
    with KeyedOneInputOperatorHarness(Sum(), itemgetter(0), snapshots=[snapshot]) as harness:
        harness.process_element(("a", 2))
        harness.end_input()
        assert harness.values() == [("a", 3)]


def test_a_function_may_return_none() -> None:
    with KeyedOneInputOperatorHarness(Nothing(), itemgetter(0)) as harness:
        harness.process_element(("a", 1))
        harness.end_input()
        assert harness.values() == []
