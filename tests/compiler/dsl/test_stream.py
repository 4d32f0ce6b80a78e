from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.datastream import DataStream, OutputTag, SlotSharingGroup, StreamExecutionEnvironment
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import MapSpec


def test_a_stream_knows_its_environment_id_and_parallelism(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3).map(abs).set_parallelism(2)
    assert stream.get_execution_environment() is env
    assert stream.get_id() == 2
    assert stream.get_parallelism() == 2
    assert stream.get_execution_config().get_parallelism() == 4
    assert stream.state_key is None


def test_transform_adds_an_operator_with_its_call_site(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3)
    mapped = stream.transform(MapSpec(abs), Types.LONG(), name="absolute", parallelism=3)
    transformation = mapped.transformation
    assert env.get_transformations() == [transformation]
    assert transformation.inputs == (stream.transformation,)
    assert (transformation.name, transformation.parallelism) == ("absolute", 3)
    assert not transformation.parallelism_configured
    assert str(transformation.call_site).startswith("test_stream.py:")
    assert mapped.get_type() == Types.LONG()


def test_an_operator_has_the_environments_parallelism_at_the_call(
    env: StreamExecutionEnvironment,
) -> None:
    before = env.from_sequence(1, 3).map(abs)
    env.set_parallelism(7)
    after = before.map(abs)
    assert (before.get_parallelism(), after.get_parallelism()) == (4, 7)


def test_repr_of_a_stream_has_its_operator_and_line(env: StreamExecutionEnvironment) -> None:
    assert "<DataStream of 'Map' (test_stream.py:" in repr(env.from_sequence(1, 3).map(abs))


@pytest.fixture
def mapped(env: StreamExecutionEnvironment) -> DataStream[int]:
    return env.from_sequence(1, 3).map(abs)


ATTRIBUTES: dict[str, tuple[Any, str, Any]] = {
    "name": ("parse", "name", "parse"),
    "uid": ("parse-1", "uid", "parse-1"),
    "set_uid_hash": ("0" * 31 + "F", "uid_hash", "0" * 31 + "F"),
    "set_parallelism": (3, "parallelism", 3),
    "set_max_parallelism": (64, "max_parallelism", 64),
    "set_buffer_timeout": (0, "buffer_timeout", 0),
    "set_description": ("parses", "description", "parses"),
    "slot_sharing_group": ("fast", "slot_sharing_group", "fast"),
    "set_chaining_strategy": (
        ChainingStrategy.HEAD_WITH_SOURCES,
        "chaining_strategy",
        ChainingStrategy.HEAD_WITH_SOURCES,
    ),
}


@pytest.mark.parametrize("setter", ATTRIBUTES)
def test_setters_of_a_stream_return_the_stream(mapped: DataStream[int], setter: str) -> None:
    argument, attribute, expected = ATTRIBUTES[setter]
    assert getattr(mapped, setter)(argument) is mapped
    assert getattr(mapped.transformation, attribute) == expected


def test_start_new_chain_and_disable_chaining_set_the_chaining_strategy(
    mapped: DataStream[int],
) -> None:
    assert mapped.transformation.chaining_strategy is ChainingStrategy.ALWAYS
    assert mapped.start_new_chain().transformation.chaining_strategy is ChainingStrategy.HEAD
    assert mapped.disable_chaining().transformation.chaining_strategy is ChainingStrategy.NEVER


def test_only_a_parallelism_set_on_the_operator_counts_as_configured(
    mapped: DataStream[int],
) -> None:
    assert not mapped.transformation.parallelism_configured
    assert mapped.set_parallelism(4).transformation.parallelism_configured


def test_force_non_parallel_refuses_another_parallelism(mapped: DataStream[int]) -> None:
    transformation = mapped.force_non_parallel().transformation
    assert (transformation.parallelism, transformation.max_parallelism) == (1, 1)
    mapped.set_parallelism(1).set_max_parallelism(1)
    with pytest.raises(GraphError, match="this operator is not parallel"):
        mapped.set_parallelism(2)
    with pytest.raises(GraphError, match="this operator is not parallel"):
        mapped.set_max_parallelism(2)


def test_a_slot_sharing_group_with_resources_is_registered(
    env: StreamExecutionEnvironment, mapped: DataStream[int]
) -> None:
    group = SlotSharingGroup.builder("gpu").set_cpu_cores(1).set_task_heap_memory_mb(8).build()
    mapped.slot_sharing_group(group)
    assert mapped.transformation.slot_sharing_group == "gpu"
    assert env.program().slot_group_resources == {"gpu": group}


WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("name", 5, TypeError, "the name is 5 of type int; it must be a str"),
    ("uid", None, TypeError, "the uid is None; it must be a str"),
    ("uid", "", ValueError, "the uid of 'Map' .* is empty"),
    ("set_uid_hash", "xyz", GraphError, "it must be 32 hexadecimal digits"),
    ("set_uid_hash", "0" * 33, GraphError, "it must be 32 hexadecimal digits"),
    ("set_parallelism", 0, GraphError, "parallelism is 0; it must be at least 1"),
    ("set_parallelism", -2, GraphError, "parallelism is -2; it must be at least 1"),
    ("set_parallelism", "4", TypeError, "parallelism is '4'; it must be an int"),
    ("set_parallelism", True, TypeError, "parallelism is True; it must be an int"),
    ("set_max_parallelism", 0, GraphError, "must be between 1 and 32768"),
    ("set_max_parallelism", 32769, GraphError, "must be between 1 and 32768"),
    ("set_buffer_timeout", -2, ValueError, "the timeout is -2 ms; it must be -1 or more"),
    ("set_description", 5, TypeError, "the description is 5"),
    ("slot_sharing_group", "", ValueError, "the group's name is empty"),
    ("slot_sharing_group", 5, TypeError, "the group is 5"),
    ("set_chaining_strategy", "HEAD", TypeError, "it must be a ChainingStrategy"),
]


@pytest.mark.parametrize(("setter", "value", "error", "message"), WRONG)
def test_setters_of_a_stream_refuse_wrong_values_with_the_users_line(
    mapped: DataStream[int], setter: str, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as refused:
        getattr(mapped, setter)(value)
    assert "test_stream.py:" in str(refused.value)


NO_OPERATORS = {
    "a rebalance partitioning": lambda stream: stream.rebalance(),
    "a hash partitioning": lambda stream: stream.key_by(abs),
    "a union": lambda stream: stream.union(stream),
    "the side output 'late'": lambda stream: stream.get_side_output(OutputTag("late")),
}


@pytest.mark.parametrize("what", NO_OPERATORS)
@pytest.mark.parametrize(
    "setter", [*ATTRIBUTES, "start_new_chain", "force_non_parallel", "get_name"]
)
def test_partitionings_and_side_outputs_have_no_setters_of_operators(
    mapped: DataStream[int], what: str, setter: str
) -> None:
    stream = NO_OPERATORS[what](mapped)
    arguments = ATTRIBUTES[setter][:1] if setter in ATTRIBUTES else ()
    with pytest.raises(GraphError, match=f"{setter}.*{what} .* is not an operator"):
        getattr(stream, setter)(*arguments)
