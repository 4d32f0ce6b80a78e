from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.compiler.graph.transformation import OperatorTransformation, PartitionTransformation
from opchain.datastream import (
    DataStream,
    KeyedProcessFunction,
    KeyedStream,
    ProcessFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
)
from opchain.datastream.data_stream import DataStreamUtils
from opchain.datastream.window import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.key_selectors import FieldAggregation
from opchain.runtime.program.operator_specs import (
    KeyedProcessSpec,
    ProcessSpec,
    ReduceSpec,
    WindowSpec,
)


class PerKey(KeyedProcessFunction[int, int, int]):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context[int]) -> Any:
        yield value


class PassOn(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield value


class Add(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


@pytest.fixture
def keyed(env: StreamExecutionEnvironment) -> KeyedStream[int, int]:
    return env.from_sequence(1, 30).key_by(lambda value: value % 10)


def operator(stream: DataStream[Any]) -> OperatorTransformation:
    assert isinstance(stream.transformation, OperatorTransformation)
    return stream.transformation


def test_key_by_adds_a_hash_partitioning_with_the_state_key(keyed: KeyedStream[int, int]) -> None:
    transformation = keyed.transformation
    assert isinstance(transformation, PartitionTransformation)
    assert transformation.partitioner.kind is PartitionerKind.HASH
    assert transformation.partitioner.key_by is keyed.state_key


@pytest.mark.parametrize(
    ("call", "name", "kind"),
    [
        (lambda stream: stream.process(PerKey()), "KeyedProcess", KeyedProcessSpec),
        (lambda stream: stream.process(PassOn()), "Process", ProcessSpec),
        (lambda stream: stream.reduce(Add()), "Keyed Reduce", ReduceSpec),
        (lambda stream: stream.reduce(max), "Keyed Reduce", ReduceSpec),
    ],
)
def test_an_operation_on_a_keyed_stream_is_keyed(
    keyed: KeyedStream[int, int], call: Any, name: str, kind: type
) -> None:
    added = operator(call(keyed))
    assert (added.name, type(added.spec)) == (name, kind)
    assert added.key_bys == (keyed.state_key,)
    assert added.is_keyed


def test_operations_of_plain_streams_stay_keyed(keyed: KeyedStream[int, int]) -> None:
    for stream in (keyed.map(abs), keyed.filter(bool), keyed.flat_map(range)):
        assert operator(stream).key_bys == (keyed.state_key,)
        assert stream.state_key is None


def test_of_two_key_by_calls_the_last_one_counts(keyed: KeyedStream[int, int]) -> None:
    outer = keyed.key_by(lambda value: value % 3)
    assert outer.transformation.inputs == (keyed.transformation,)
    assert operator(outer.map(abs)).key_bys == (outer.state_key,)
    assert outer.state_key is not keyed.state_key


@pytest.mark.parametrize("kind", ["sum", "min", "max", "min_by", "max_by"])
def test_a_rolling_aggregation_is_a_reduce_of_one_field(
    keyed: KeyedStream[int, int], kind: str
) -> None:
    added = operator(getattr(keyed, kind)("size"))
    assert added.name == "Keyed Aggregation"
    assert isinstance(added.spec, ReduceSpec)
    assert isinstance(added.spec.function, FieldAggregation)
    assert (added.spec.function.kind, added.spec.function.field) == (kind, "size")
    assert operator(getattr(keyed, kind)()).spec.function.field == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("field", [1.5, None, True])
def test_a_rolling_aggregation_needs_a_field_index_or_name(
    keyed: KeyedStream[int, int], field: Any
) -> None:
    with pytest.raises(TypeError, match=r"sum.*the field is .* it must be an int or a str"):
        keyed.sum(field)


def test_count_windows_tumble_or_slide(keyed: KeyedStream[int, int]) -> None:
    tumbling = operator(keyed.count_window(3).reduce(max)).spec
    sliding = operator(keyed.count_window(3, 2).reduce(max)).spec
    assert isinstance(tumbling, WindowSpec)
    assert isinstance(sliding, WindowSpec)
    assert isinstance(tumbling.assigner, CountTumblingWindowAssigner)
    assert isinstance(sliding.assigner, CountSlidingWindowAssigner)


@pytest.mark.parametrize(("size", "slide"), [(0, 0), (-1, 0), (3, -1)])
def test_a_count_window_needs_a_size(keyed: KeyedStream[int, int], size: int, slide: int) -> None:
    with pytest.raises(ValueError, match="count_window"):
        keyed.count_window(size, slide)


@pytest.mark.parametrize(
    "call", ["shuffle", "rebalance", "rescale", "forward", "global_", "broadcast"]
)
def test_partitioning_a_keyed_stream_is_refused(keyed: KeyedStream[int, int], call: str) -> None:
    with pytest.raises(GraphError, match=rf"{call}.*partitioned by its key \(key_by at test_keyed"):
        getattr(keyed, call)()


def test_partition_custom_on_a_keyed_stream_is_refused(keyed: KeyedStream[int, int]) -> None:
    with pytest.raises(GraphError, match=r"call partition_custom\(\) before key_by\(\)"):
        keyed.partition_custom(min, abs)


def test_reduce_keeps_the_declared_type_of_the_records(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1], Types.LONG()).key_by(abs)
    assert stream.reduce(max).get_type() == stream.sum().get_type() == Types.LONG()


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.process(Add()),
        lambda stream: stream.reduce(PassOn()),
        lambda stream: stream.reduce(abs),
        lambda stream: stream.window("5 s"),
    ],
)
def test_operations_on_keyed_streams_refuse_wrong_arguments_at_the_call(
    keyed: KeyedStream[int, int], call: Any
) -> None:
    with pytest.raises(TypeError, match=r"test_keyed_stream.py"):
        call(keyed)


def test_reinterpret_as_keyed_stream_keys_state_without_an_exchange(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_sequence(1, 3).key_by(abs).reduce(max)
    keyed = DataStreamUtils.reinterpret_as_keyed_stream(stream, abs, Types.LONG())
    assert isinstance(keyed, KeyedStream)
    transformation = keyed.transformation
    assert isinstance(transformation, PartitionTransformation)
    assert transformation.partitioner.kind is PartitionerKind.FORWARD
    assert transformation.inputs == (stream.transformation,)
    assert transformation.id == stream.get_id() + 1
    reduced = keyed.reduce(max).transformation
    assert isinstance(reduced, OperatorTransformation)
    assert reduced.key_bys == (keyed.state_key,)
    assert keyed.state_key.key_type == Types.LONG()


def test_reinterpret_as_keyed_stream_refuses_wrong_arguments(
    env: StreamExecutionEnvironment,
) -> None:
    reinterpret: Any = DataStreamUtils.reinterpret_as_keyed_stream
    with pytest.raises(TypeError, match="the stream is 5"):
        reinterpret(5, abs)
    with pytest.raises(TypeError, match="expected a KeySelector or a callable"):
        reinterpret(env.from_sequence(1, 3), "field")
