from __future__ import annotations

from typing import Any

import pytest

from opchain.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from opchain.runtime.functions.record_functions import MapPartitionFunction
from opchain.runtime.functions.state_descriptors import MapStateDescriptor
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.testing.operator_harness import spec_of

KINDS: list[tuple[Any, Any]] = [
    (MapFunction, specs.MapSpec),
    (FilterFunction, specs.FilterSpec),
    (FlatMapFunction, specs.FlatMapSpec),
    (ReduceFunction, specs.ReduceSpec),
    (ProcessFunction, specs.ProcessSpec),
    (KeyedProcessFunction, specs.KeyedProcessSpec),
    (CoMapFunction, specs.CoMapSpec),
    (CoFlatMapFunction, specs.CoFlatMapSpec),
    (CoProcessFunction, specs.CoProcessSpec),
    (KeyedCoProcessFunction, specs.KeyedCoProcessSpec),
    (BroadcastProcessFunction, specs.BroadcastProcessSpec),
    (KeyedBroadcastProcessFunction, specs.KeyedBroadcastProcessSpec),
]


def object_of(kind: Any) -> Any:
    """An instance of an abstract class, of which only the class is used."""
    return type("Concrete", (kind,), dict.fromkeys(kind.__abstractmethods__))()


@pytest.mark.parametrize(("kind", "spec"), KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_of_function_has_its_spec(kind: Any, spec: Any) -> None:
    function = object_of(kind)
    found = spec_of(function, is_keyed=False)
    assert type(found) is spec
    assert found.function is function  # type: ignore[attr-defined]


def test_map_partition_is_evaluated_per_subtask_or_per_key() -> None:
    function = object_of(MapPartitionFunction)
    assert isinstance(spec_of(function, is_keyed=True), specs.FullWindowSpec)
    assert isinstance(spec_of(function, is_keyed=False), specs.MapPartitionSpec)


def test_broadcast_functions_get_their_state_descriptors() -> None:
    rules: MapStateDescriptor[Any, Any] = MapStateDescriptor("rules")
    spec = spec_of(object_of(BroadcastProcessFunction), [rules], is_keyed=False)
    assert spec.descriptors == (rules,)  # type: ignore[attr-defined]


def test_a_spec_is_used_unchanged() -> None:
    spec = specs.MapSpec(str)
    assert spec_of(spec, is_keyed=False) is spec


@pytest.mark.parametrize("function", [str, lambda value: value, object()])
def test_other_objects_are_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="pass the operator's spec"):
        spec_of(function, is_keyed=False)
