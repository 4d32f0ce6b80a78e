from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.compiler.dsl.connected_streams import multiple_input, with_two_inputs
from opchain.compiler.graph.transformation import ChainingStrategy, OperatorTransformation
from opchain.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    ConnectedStreams,
    CoProcessFunction,
    KeyedCoProcessFunction,
    StreamExecutionEnvironment,
)
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import CoMapSpec, MultiInputSpec


class BothMapped(CoMapFunction[int, str, str]):
    def map1(self, value: int) -> str:
        return str(value)

    def map2(self, value: str) -> str:
        return value


class BothFlat(CoFlatMapFunction[int, str, str]):
    def flat_map1(self, value: int) -> Any:
        yield str(value)

    def flat_map2(self, value: str) -> Any:
        yield value


class Both(CoProcessFunction[int, str, str]):
    def process_element1(self, value: int, ctx: Any) -> Any:
        yield str(value)

    def process_element2(self, value: str, ctx: Any) -> Any:
        yield value


class BothByKey(KeyedCoProcessFunction[int, int, str, str]):
    def process_element1(self, value: int, ctx: Any) -> Any:
        yield str(value)

    def process_element2(self, value: str, ctx: Any) -> Any:
        yield value


@pytest.fixture
def connected(env: StreamExecutionEnvironment) -> ConnectedStreams[int, str]:
    return env.from_sequence(1, 3).connect(env.from_collection(["a"]))


CALLS: dict[str, Any] = {
    "Co-Map": lambda streams: streams.map(BothMapped()),
    "Co-Flat Map": lambda streams: streams.flat_map(BothFlat()),
    "Co-Process": lambda streams: streams.process(Both()),
    "Co-Keyed-Process": lambda streams: streams.process(BothByKey()),
}


@pytest.mark.parametrize("name", list(CALLS)[:3])
def test_an_operation_on_connected_streams_has_both_inputs(
    env: StreamExecutionEnvironment, connected: ConnectedStreams[int, str], name: str
) -> None:
    added = CALLS[name](connected).transformation
    assert isinstance(added, OperatorTransformation)
    assert env.get_transformations() == [added]
    assert added.name == name
    assert added.inputs == (connected.stream1.transformation, connected.stream2.transformation)
    assert added.key_bys == (None, None)


@pytest.mark.parametrize("name", CALLS)
def test_an_operation_on_connected_keyed_streams_has_both_keys(
    connected: ConnectedStreams[int, str], name: str
) -> None:
    keyed = connected.key_by(abs, len)
    added = CALLS[name](keyed).transformation
    assert added.name == name
    assert [key_by.selector for key_by in added.key_bys] == [abs, len]


def test_one_of_two_connected_streams_may_be_keyed(connected: ConnectedStreams[int, str]) -> None:
    half = connected.stream1.key_by(abs).connect(connected.stream2)
    added: Any = half.map(BothMapped()).transformation
    assert (added.key_bys[0].selector, added.key_bys[1]) == (abs, None)


def test_a_keyed_function_needs_keys_on_both_sides_or_on_none(
    connected: ConnectedStreams[int, str],
) -> None:
    assert connected.process(BothByKey()).get_name() == "Co-Process"
    half = connected.stream1.key_by(abs).connect(connected.stream2)
    with pytest.raises(GraphError, match=r"input 2, 'Collection Source' .* has no key"):
        half.process(BothByKey())


def test_different_declared_key_types_of_connected_streams_are_refused(
    connected: ConnectedStreams[int, str],
) -> None:
    first = connected.stream1.key_by(abs, Types.LONG())
    second = connected.stream2.key_by(len, Types.STRING())
    with pytest.raises(GraphError, match="the keys of the two inputs are declared as"):
        first.connect(second).map(BothMapped())
    assert first.connect(connected.stream2.key_by(len)).map(BothMapped()).get_name() == "Co-Map"


@pytest.mark.parametrize(
    ("call", "function"),
    [("map", abs), ("map", BothFlat()), ("flat_map", BothMapped()), ("process", BothMapped())],
)
def test_connected_streams_refuse_functions_of_the_wrong_kind(
    connected: ConnectedStreams[int, str], call: str, function: Any
) -> None:
    with pytest.raises(TypeError, match=rf"{call}\(\) \(test_connected_streams.py:"):
        getattr(connected, call)(function)


def test_with_two_inputs_keeps_the_key_of_each_input(env: StreamExecutionEnvironment) -> None:
    keyed, plain = env.from_sequence(1, 3).key_by(abs), env.from_sequence(4, 6)
    stream = with_two_inputs(CoMapSpec(None), keyed, plain, Types.LONG())
    added = stream.transformation
    assert isinstance(added, OperatorTransformation)
    assert env.get_transformations() == [added]
    assert (added.name, added.inputs) == ("Co-Map", (keyed.transformation, plain.transformation))
    assert added.key_bys == (keyed.state_key, None)
    assert (added.parallelism, added.output_type) == (4, Types.LONG())


def test_with_two_inputs_refuses_an_output_type_of_the_wrong_kind(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_sequence(1, 3)
    with pytest.raises(TypeError, match="it takes a TypeInformation"):
        with_two_inputs(CoMapSpec(None), stream, stream, str)  # type: ignore[arg-type]


def test_multiple_input_adds_one_operator_that_can_chain_sources(
    env: StreamExecutionEnvironment,
) -> None:
    streams = [env.from_sequence(1, 3), env.from_collection([4]), env.from_sequence(5, 6)]
    added = multiple_input(streams, [range, range, range]).transformation
    assert isinstance(added, OperatorTransformation)
    assert env.get_transformations() == [added]
    assert added.name == "Multiple Input Operator"
    assert added.spec == MultiInputSpec((range, range, range))
    assert added.inputs == tuple(stream.transformation for stream in streams)
    assert added.chaining_strategy is ChainingStrategy.HEAD_WITH_SOURCES
    assert added.key_bys == (None, None, None)
    assert not added.parallelism_configured


def test_multiple_input_is_keyed_only_if_all_streams_are(env: StreamExecutionEnvironment) -> None:
    first, second = env.from_sequence(1, 3).key_by(abs), env.from_sequence(1, 3).key_by(abs)
    keyed = multiple_input([first, second], [range, range]).transformation
    half = multiple_input([first, env.from_sequence(1, 3)], [range, range]).transformation
    assert isinstance(keyed, OperatorTransformation)
    assert isinstance(half, OperatorTransformation)
    assert keyed.key_bys == (first.state_key, second.state_key)
    assert not half.is_keyed


def test_multiple_input_needs_a_function_for_each_stream(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3)
    with pytest.raises(ValueError, match="got 2 streams and 1 functions"):
        multiple_input([stream, stream], [range])
    with pytest.raises(ValueError, match="got 0 streams"):
        multiple_input([], [])
    with pytest.raises(TypeError, match="expected a FlatMapFunction or a callable"):
        multiple_input([stream], [None])  # type: ignore[list-item]


def test_multiple_input_refuses_streams_of_different_environments(
    env: StreamExecutionEnvironment,
) -> None:
    far = StreamExecutionEnvironment().from_sequence(1, 3)
    with pytest.raises(GraphError, match="belongs to another StreamExecutionEnvironment"):
        multiple_input([env.from_sequence(1, 3), far], [range, range])
