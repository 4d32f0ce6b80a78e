from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.flink_json import streaming_plan
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.simple_sinks import DiscardingSink

if TYPE_CHECKING:
    from opchain.datastream import DataStream


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(4)


def nodes_of(env: StreamExecutionEnvironment) -> list[dict[str, Any]]:
    graph = compile_program(env.program(), until="stream-graph").stream_graph
    assert graph is not None
    nodes: list[dict[str, Any]] = streaming_plan(graph)["nodes"]
    return nodes


def test_flinks_stream_plan_has_a_node_per_operator_ordered_by_id(
    env: StreamExecutionEnvironment,
) -> None:
    env.from_collection([1, 2]).map(str).set_parallelism(3).name("text").print()
    source, operator, sink = nodes_of(env)
    assert source == {
        "id": 1,
        "type": "Source: Collection Source",
        "pact": "Data Source",
        "contents": "Source: Collection Source",
        "parallelism": 1,
    }
    assert operator == {
        "id": 2,
        "type": "text",
        "pact": "Operator",
        "contents": "text",
        "parallelism": 3,
        "predecessors": [{"id": 1, "ship_strategy": "REBALANCE", "side": "second"}],
    }
    assert (sink["pact"], sink["predecessors"][0]["id"]) == ("Data Sink", 2)


@pytest.mark.parametrize("method", ["rebalance", "rescale", "shuffle", "broadcast", "global_"])
def test_edges_in_flinks_stream_plan_have_their_ship_strategy(
    env: StreamExecutionEnvironment, method: str
) -> None:
    stream: DataStream[Any] = getattr(env.from_collection([1]), method)()
    stream.map(str)
    (_, operator) = nodes_of(env)
    strategy = method.rstrip("_").upper()
    assert operator["predecessors"][0]["ship_strategy"] == strategy


def test_an_operator_in_flinks_stream_plan_lists_all_inputs_of_a_union(
    env: StreamExecutionEnvironment,
) -> None:
    one, two = env.from_collection([1]), env.from_collection([2])
    one.key_by(str).union(two).map(str).name("both")
    (operator,) = [node for node in nodes_of(env) if node["type"] == "both"]
    edges = [(edge["id"], edge["ship_strategy"]) for edge in operator["predecessors"]]
    assert edges == [(1, "HASH"), (2, "REBALANCE")]


def test_sinks_of_add_sink_are_last_in_flinks_stream_plan(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([1])
    numbers.print()
    numbers.map(str).name("text").sink_to(DiscardingSink())
    assert [node["pact"] for node in nodes_of(env)] == [
        *("Data Source", "Operator", "Operator", "Data Sink")
    ]


def test_a_node_of_flinks_stream_plan_contains_the_description(
    env: StreamExecutionEnvironment,
) -> None:
    env.from_collection([1]).map(str).name("text").set_description("as text")
    assert [node["contents"] for node in nodes_of(env)][1] == "as text"


def test_get_execution_plan_returns_flinks_stream_plan_as_json(
    env: StreamExecutionEnvironment,
) -> None:
    env.from_collection([1]).map(str)
    text = env.get_execution_plan()
    assert json.loads(text)["nodes"] == nodes_of(env)
    assert text.endswith("}")
