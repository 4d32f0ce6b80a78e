from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from opchain.common import Duration, Time
from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.compiler.graph.transformation import OperatorTransformation, PartitionTransformation
from opchain.datastream import (
    KeyedStream,
    OutputTag,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import IntervalJoinSpec


class Pair(ProcessJoinFunction[int, str, str]):
    def process_element(self, left: int, right: str, ctx: Any) -> Any:
        yield f"{left}{right}"


@pytest.fixture
def left(env: StreamExecutionEnvironment) -> KeyedStream[int, int]:
    return env.from_sequence(1, 3).key_by(abs)


@pytest.fixture
def right(env: StreamExecutionEnvironment) -> KeyedStream[int, str]:
    return env.from_collection(["a"]).key_by(len)


def spec_of(stream: Any) -> IntervalJoinSpec:
    assert isinstance(stream.transformation, OperatorTransformation)
    assert isinstance(stream.transformation.spec, IntervalJoinSpec)
    return stream.transformation.spec


def test_interval_join_partitions_both_inputs_by_their_keys(
    env: StreamExecutionEnvironment,
    left: KeyedStream[int, int],
    right: KeyedStream[int, str],
) -> None:
    added = left.interval_join(right).between(-1, 1).process(Pair()).transformation
    assert env.get_transformations() == [added]
    assert added.name == "Interval Join"
    assert added.id == right.get_id() + 3
    for again, keyed in zip(added.inputs, (left, right), strict=True):
        assert isinstance(again, PartitionTransformation)
        assert again.inputs == (keyed.transformation,)
        assert again.partitioner.kind is PartitionerKind.HASH
        assert again.partitioner.key_by is keyed.state_key
    assert isinstance(added, OperatorTransformation)
    assert added.key_bys == (left.state_key, right.state_key)


@pytest.mark.parametrize(
    "span",
    [
        (-1000, 2000),
        (Time.seconds(-1), Time.seconds(2)),
        (timedelta(seconds=-1), Duration.of_seconds(2)),
    ],
)
def test_interval_join_takes_any_kind_of_duration_as_bounds(
    left: KeyedStream[int, int], right: KeyedStream[int, str], span: Any
) -> None:
    spec = spec_of(left.interval_join(right).in_event_time().between(*span).process(Pair()))
    assert (spec.lower_ms, spec.upper_ms) == (-1000, 2000)
    assert spec.lower_inclusive
    assert spec.upper_inclusive


def test_interval_join_can_exclude_bounds_and_output_late_records(
    left: KeyedStream[int, int], right: KeyedStream[int, str]
) -> None:
    late_left, late_right = OutputTag[int]("left"), OutputTag[str]("right")
    joined = left.interval_join(right).between(0, 9)
    joined.lower_bound_exclusive()  # a program may drop the result
    spec = spec_of(
        joined.upper_bound_exclusive()
        .side_output_left_late_data(late_left)
        .side_output_right_late_data(late_right)
        .process(Pair())
    )
    assert not spec.lower_inclusive
    assert not spec.upper_inclusive
    assert (spec.left_late_tag, spec.right_late_tag) == (late_left, late_right)


def test_interval_join_refuses_an_empty_interval(
    left: KeyedStream[int, int], right: KeyedStream[int, str]
) -> None:
    with pytest.raises(ValueError, match="the lower bound, 2 ms, is above the upper bound, 1 ms"):
        left.interval_join(right).between(2, 1)
    point = left.interval_join(right).between(1, 1)
    with pytest.raises(ValueError, match="the interval is empty: it goes from 1 to 1 ms"):
        point.lower_bound_exclusive().process(Pair())


def test_interval_join_needs_a_keyed_stream_of_the_same_environment(
    env: StreamExecutionEnvironment, left: KeyedStream[int, int]
) -> None:
    stream: Any = env.from_collection(["a"])
    with pytest.raises(TypeError, match=r"interval_join.*it takes a KeyedStream"):
        left.interval_join(stream)
    far = StreamExecutionEnvironment().from_collection(["a"]).key_by(len)
    with pytest.raises(GraphError, match="belongs to another StreamExecutionEnvironment"):
        left.interval_join(far)


def test_interval_join_uses_the_kind_of_time_of_the_last_call(
    left: KeyedStream[int, int], right: KeyedStream[int, str]
) -> None:
    for join, is_event_time in (
        (left.interval_join(right), True),
        (left.interval_join(right).in_processing_time(), False),
        (left.interval_join(right).in_processing_time().in_event_time(), True),
    ):
        stream = join.between(-1, 1).process(Pair())
        assert stream.transformation.spec.is_event_time is is_event_time  # type: ignore[attr-defined]


def test_interval_join_refuses_arguments_of_the_wrong_kind_at_the_call(
    left: KeyedStream[int, int], right: KeyedStream[int, str]
) -> None:
    joined: Any = left.interval_join(right).between(-1, 1)
    with pytest.raises(TypeError, match="it takes a ProcessJoinFunction"):
        joined.process(max)
    for call in ("side_output_left_late_data", "side_output_right_late_data"):
        with pytest.raises(TypeError, match=f"{call}.*the tag is 'late'"):
            getattr(joined, call)("late")
