from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.compiler.graph.transformation import OperatorTransformation
from opchain.datastream import (
    BroadcastProcessFunction,
    BroadcastStream,
    DataStream,
    KeyedBroadcastProcessFunction,
    StreamExecutionEnvironment,
)
from opchain.datastream.state import MapStateDescriptor, ValueStateDescriptor
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import BroadcastProcessSpec, KeyedBroadcastProcessSpec

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Check(BroadcastProcessFunction[int, str, int]):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: str, ctx: Any) -> Any:
        yield from ()


class CheckByKey(KeyedBroadcastProcessFunction[int, int, str, int]):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: str, ctx: Any) -> Any:
        yield from ()


@pytest.fixture
def numbers(env: StreamExecutionEnvironment) -> DataStream[int]:
    return env.from_sequence(1, 3)


@pytest.fixture
def rules(env: StreamExecutionEnvironment) -> BroadcastStream[str]:
    return env.from_collection(["odd"]).broadcast(RULES)


def test_process_on_a_plain_and_a_broadcast_stream_adds_an_operator(
    numbers: DataStream[int], rules: BroadcastStream[str]
) -> None:
    added = numbers.connect(rules).process(Check()).transformation
    assert isinstance(added, OperatorTransformation)
    assert isinstance(added.spec, BroadcastProcessSpec)
    assert added.name == "Co-Process-Broadcast"
    assert added.spec.descriptors == (RULES,)
    assert added.inputs == (numbers.transformation, rules.input_stream.transformation)
    assert added.key_bys == (None, None)


def test_process_on_a_keyed_and_a_broadcast_stream_adds_a_keyed_operator(
    numbers: DataStream[int], rules: BroadcastStream[str]
) -> None:
    keyed = numbers.key_by(abs)
    added = keyed.connect(rules).process(CheckByKey()).transformation
    assert isinstance(added, OperatorTransformation)
    assert isinstance(added.spec, KeyedBroadcastProcessSpec)
    assert added.name == "Co-Process-Broadcast-Keyed"
    assert added.key_bys == (keyed.state_key, None)


def test_a_keyed_broadcast_function_needs_a_keyed_stream_and_vice_versa(
    numbers: DataStream[int], rules: BroadcastStream[str]
) -> None:
    with pytest.raises(
        TypeError, match="without key and takes a BroadcastProcessFunction, not Chec"
    ):
        numbers.connect(rules).process(CheckByKey())
    with pytest.raises(
        TypeError, match="with key and takes a KeyedBroadcastProcessFunction, not C"
    ):
        numbers.key_by(abs).connect(rules).process(Check())


def test_process_refuses_functions_that_are_not_broadcast_functions(
    numbers: DataStream[int], rules: BroadcastStream[str]
) -> None:
    connected: Any = numbers.connect(rules)
    with pytest.raises(TypeError, match="it takes a BroadcastProcessFunction or a KeyedBroadcast"):
        connected.process(abs)


def test_broadcast_refuses_two_states_with_the_same_name(numbers: DataStream[int]) -> None:
    with pytest.raises(ValueError, match="two state descriptors are named 'rules'"):
        numbers.broadcast(RULES, MapStateDescriptor("rules"))


@pytest.mark.parametrize("descriptors", [(ValueStateDescriptor("v"),), (None, RULES), (RULES, 5)])
def test_a_broadcast_state_is_a_map(numbers: DataStream[int], descriptors: Any) -> None:
    with pytest.raises(TypeError, match=r"a state descriptor is .* must be a MapStateDescriptor"):
        numbers.broadcast(*descriptors)


def test_a_broadcast_stream_of_another_environment_is_refused(rules: BroadcastStream[str]) -> None:
    far = StreamExecutionEnvironment().from_sequence(1, 3)
    with pytest.raises(GraphError, match="belongs to another StreamExecutionEnvironment"):
        far.connect(rules)
