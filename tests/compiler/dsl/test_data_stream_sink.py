from __future__ import annotations

from typing import Any

import pytest

from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.datastream import DataStreamSink, SlotSharingGroup, StreamExecutionEnvironment
from opchain.datastream.connectors.discard import DiscardingSink, DiscardingSinkFunction
from opchain.runtime.errors import GraphError


@pytest.fixture(params=["sink_to", "add_sink"])
def sink(env: StreamExecutionEnvironment, request: pytest.FixtureRequest) -> DataStreamSink[int]:
    stream = env.from_sequence(1, 3)
    if request.param == "sink_to":
        return stream.sink_to(DiscardingSink())
    return stream.add_sink(DiscardingSinkFunction())


@pytest.mark.parametrize(
    ("setter", "value", "attribute"),
    [
        ("name", "out", "name"),
        ("uid", "out-1", "uid"),
        ("set_parallelism", 2, "parallelism"),
        ("set_max_parallelism", 64, "max_parallelism"),
        ("set_description", "writes", "description"),
        ("slot_sharing_group", "slow", "slot_sharing_group"),
    ],
)
def test_a_setter_sets_and_gives_the_sink_back(
    sink: DataStreamSink[int], setter: str, value: Any, attribute: str
) -> None:
    assert getattr(sink, setter)(value) is sink
    assert getattr(sink.transformation, attribute) == value


def test_a_sink_may_be_kept_out_of_chains(sink: DataStreamSink[int]) -> None:
    sink.disable_chaining()
    assert sink.transformation.chaining_strategy is ChainingStrategy.NEVER


def test_a_uid_hash_is_for_sinks_of_one_operator(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3)
    digits = "0123456789abcdef" * 2
    legacy = stream.add_sink(DiscardingSinkFunction()).set_uid_hash(digits)
    assert legacy.transformation.uid_hash == digits
    with pytest.raises(GraphError, match="which becomes several operators; use uid"):
        stream.sink_to(DiscardingSink()).set_uid_hash(digits)


def test_a_group_with_resources_is_registered(
    env: StreamExecutionEnvironment, sink: DataStreamSink[int]
) -> None:
    group = SlotSharingGroup.builder("disk").set_cpu_cores(1).set_task_heap_memory_mb(8).build()
    sink.slot_sharing_group(group)
    assert env.program().slot_group_resources == {"disk": group}


@pytest.mark.parametrize(
    ("setter", "value", "error"),
    [
        ("name", None, TypeError),
        ("uid", "", ValueError),
        ("set_parallelism", 0, GraphError),
        ("set_max_parallelism", 0, GraphError),
        ("set_description", 1, TypeError),
        ("slot_sharing_group", "", ValueError),
    ],
)
def test_a_wrong_value_is_refused(
    sink: DataStreamSink[int], setter: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        getattr(sink, setter)(value)


def test_a_sink_prints_its_name_and_line(sink: DataStreamSink[int]) -> None:
    assert "<DataStreamSink 'out' (test_data_stream_sink.py:" in repr(sink.name("out"))
