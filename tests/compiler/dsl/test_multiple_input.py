from __future__ import annotations

import pytest

from opchain.compiler.dsl.multiple_input import multiple_input
from opchain.compiler.graph.transformation import ChainingStrategy, OperatorTransformation
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import MultiInputSpec


def test_it_is_one_operator_that_takes_sources_in(env: StreamExecutionEnvironment) -> None:
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


def test_it_is_keyed_where_all_streams_are(env: StreamExecutionEnvironment) -> None:
    first, second = env.from_sequence(1, 3).key_by(abs), env.from_sequence(1, 3).key_by(abs)
    keyed = multiple_input([first, second], [range, range]).transformation
    half = multiple_input([first, env.from_sequence(1, 3)], [range, range]).transformation
    assert isinstance(keyed, OperatorTransformation)
    assert isinstance(half, OperatorTransformation)
    assert keyed.key_bys == (first.state_key, second.state_key)
    assert not half.is_keyed


def test_each_stream_needs_a_function(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3)
    with pytest.raises(ValueError, match="got 2 streams and 1 functions"):
        multiple_input([stream, stream], [range])
    with pytest.raises(ValueError, match="got 0 streams"):
        multiple_input([], [])
    with pytest.raises(TypeError, match="expected a FlatMapFunction or a callable"):
        multiple_input([stream], [None])  # type: ignore[list-item]


def test_streams_of_two_environments_never_meet(env: StreamExecutionEnvironment) -> None:
    far = StreamExecutionEnvironment().from_sequence(1, 3)
    with pytest.raises(GraphError, match="belongs to another StreamExecutionEnvironment"):
        multiple_input([env.from_sequence(1, 3), far], [range, range])
