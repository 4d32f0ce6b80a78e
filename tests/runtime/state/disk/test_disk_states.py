from __future__ import annotations

from typing import Any

import pytest

from opchain.datastream import AggregateFunction
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.state.disk import disk_backend
from opchain.runtime.state.keyed.hash_map_states import STATES

pytest.importorskip("rocksdict")

VALUE: ValueStateDescriptor[Any] = ValueStateDescriptor("value")
LIST: ListStateDescriptor[Any] = ListStateDescriptor("list")
MAP: MapStateDescriptor[Any, Any] = MapStateDescriptor("map")


class Gather(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


def test_values_are_copied_in_and_out(backend: Any) -> None:
    value = ["mine"]
    backend.get_state(VALUE).update(value)
    value.append("later")
    backend.get_state(VALUE).value().append("of a copy")
    assert backend.get_state(VALUE).value() == ["mine"]
    backend.get_list_state(LIST).add(value)
    backend.get_map_state(MAP).put("a", value)
    value.append("again")
    for element in (*backend.get_list_state(LIST).get(), *backend.get_map_state(MAP).values()):
        element.clear()
    assert backend.get_list_state(LIST).get() == [["mine", "later"]]
    assert list(backend.get_map_state(MAP).items()) == [("a", ["mine", "later"])]


def test_accumulators_are_copied_in_and_out(backend: Any) -> None:
    gathered = backend.get_aggregating_state(AggregatingStateDescriptor("all", Gather()))
    joined = backend.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
    value = ["a"]
    gathered.add(value)
    joined.add(value)
    value.append("later")
    gathered.get().clear()
    joined.get().clear()
    assert (gathered.get(), joined.get()) == ([["a"]], ["a"])


def test_every_kind_of_state_has_a_class_that_copies() -> None:
    assert disk_backend.STATES.keys() == disk_backend.TTL_STATES.keys() == STATES.keys()
