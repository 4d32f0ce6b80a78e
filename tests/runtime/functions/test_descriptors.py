from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
import pytest
from aggregates import Count

from opchain.runtime.functions.record_functions import ReduceFunction
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.functions.state_ttl import StateTtlConfig
from opchain.runtime.types.types import Types

PICKLED = Types.PICKLED_BYTE_ARRAY()


class Sum(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


def descriptors() -> list[Any]:
    """One descriptor of each kind, all with one name."""
    return [
        ValueStateDescriptor("s", Types.INT()),
        ListStateDescriptor("s", Types.INT()),
        MapStateDescriptor("s", Types.STRING(), Types.INT()),
        ReducingStateDescriptor("s", Sum(), Types.INT()),
        AggregatingStateDescriptor("s", Count(), Types.INT()),
    ]


UNTYPED: list[tuple[Any, Any]] = [
    (ValueStateDescriptor("s"), PICKLED),
    (ListStateDescriptor("s"), Types.LIST(PICKLED)),
    (MapStateDescriptor("s"), Types.MAP(PICKLED, PICKLED)),
    (MapStateDescriptor("s", Types.INT()), Types.MAP(Types.INT(), PICKLED)),
    (ReducingStateDescriptor("s", Sum()), PICKLED),
    (AggregatingStateDescriptor("s", Count()), PICKLED),
]


@pytest.mark.parametrize(("descriptor", "type_info"), UNTYPED)
def test_a_type_is_optional(descriptor: Any, type_info: Any) -> None:
    assert descriptor.type_info == type_info


def test_list_and_map_descriptors_have_a_type_for_the_whole_collection() -> None:
    assert [descriptor.type_info for descriptor in descriptors()] == [
        Types.INT(),
        Types.LIST(Types.INT()),
        Types.MAP(Types.STRING(), Types.INT()),
        Types.INT(),
        Types.INT(),
    ]


@pytest.mark.parametrize("index", range(5))
def test_descriptors_are_equal_by_class_name_type_and_time_to_live(index: int) -> None:
    descriptor, same = descriptors()[index], descriptors()[index]
    assert descriptor == same
    assert hash(descriptor) == hash(same)
    assert [other == descriptor for other in descriptors()].count(True) == 1
    same.enable_time_to_live(StateTtlConfig.new_builder(1000).build())
    assert descriptor != same


def test_descriptors_with_other_names_or_types_differ() -> None:
    assert ValueStateDescriptor("a") != ValueStateDescriptor("b")
    assert ValueStateDescriptor("a", Types.INT()) != ValueStateDescriptor("a", Types.LONG())


def test_name_and_type_cannot_be_changed() -> None:
    descriptor: Any = ValueStateDescriptor("a")
    with pytest.raises(AttributeError):
        descriptor.name = "b"
    with pytest.raises(AttributeError):
        descriptor.type_info = Types.INT()
    assert descriptor.name == descriptor.get_name() == "a"


@pytest.mark.parametrize("descriptor", descriptors(), ids=repr)
def test_a_pickled_descriptor_keeps_name_type_and_function(descriptor: Any) -> None:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(1000).build())
    copy = pickle.loads(pickle.dumps(descriptor))
    assert copy == descriptor
    assert copy.ttl_config == StateTtlConfig.new_builder(1000).build()


def test_a_reducing_state_takes_a_function_object_or_a_callable() -> None:
    assert ReducingStateDescriptor("s", Sum()).get_reduce_function().reduce(1, 2) == 3
    assert ReducingStateDescriptor("s", min).get_reduce_function().reduce(1, 2) == 1
    shipped = cloudpickle.dumps(ReducingStateDescriptor[int]("s", lambda a, b: a * b))
    assert cloudpickle.loads(shipped).get_reduce_function().reduce(3, 4) == 12
    assert type(AggregatingStateDescriptor("s", Count()).get_agg_function()) is Count


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ReducingStateDescriptor("s", 5),
            "reducing state 's': expected a ReduceFunction or",
        ),  # type: ignore[arg-type]
        (lambda: ReducingStateDescriptor("s", Sum), "reducing state 's': Sum is a class"),  # type: ignore[arg-type]
        (
            lambda: AggregatingStateDescriptor("s", sum),  # type: ignore[arg-type]
            "aggregating state 's': expected an AggregateFunction, got",
        ),
    ],
)
def test_an_object_that_cannot_combine_values_is_refused(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_state_name_must_not_be_empty(name: Any) -> None:
    with pytest.raises(ValueError, match="it must be a non-empty string"):
        ValueStateDescriptor(name)


def test_the_repr_shows_name_and_type() -> None:
    assert (
        repr(ValueStateDescriptor("count", Types.LONG())) == "ValueStateDescriptor('count', Long)"
    )
    assert isinstance(ValueStateDescriptor("count"), StateDescriptor)


@pytest.mark.parametrize(
    "describe",
    [
        lambda: ValueStateDescriptor("s", str),  # type: ignore[arg-type, var-annotated]
        lambda: ValueStateDescriptor("s", Types.STRING),  # type: ignore[arg-type, var-annotated]
        lambda: ListStateDescriptor("s", str),  # type: ignore[arg-type, var-annotated]
        lambda: MapStateDescriptor("s", Types.STRING(), dict),  # type: ignore[arg-type, var-annotated]
        lambda: ReducingStateDescriptor("s", Sum(), int),  # type: ignore[arg-type]
        lambda: AggregatingStateDescriptor("s", Count(), int),  # type: ignore[arg-type]
    ],
)
def test_a_type_that_is_not_type_information_is_refused(describe: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^the type of state 's' is <.*; it must be a TypeInformation"
    ):
        describe()
