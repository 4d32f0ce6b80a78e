from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.flink_json import execution_plan
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.collection import NumberSequenceSource


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(4)


def source(env: StreamExecutionEnvironment, name: str) -> Any:
    return env.from_source(NumberSequenceSource(1, 9), WatermarkStrategy.no_watermarks(), name)


def plan_of(env: StreamExecutionEnvironment, mode: str = "TREE") -> dict[str, Any]:
    configuration = Configuration()
    configuration.set_string("pipeline.vertex-description-mode", mode)
    env.configure(configuration)
    return execution_plan(compile_program(env.program(), until="job-graph"))


def descriptions(env: StreamExecutionEnvironment, mode: str = "TREE") -> list[str]:
    return [node["description"] for node in plan_of(env, mode)["nodes"]]


def test_flinks_plan_has_a_node_per_vertex_with_consumers_first(
    env: StreamExecutionEnvironment,
) -> None:
    source(env, "in").rebalance().map(str)
    plan = plan_of(env)
    assert {key: plan[key] for key in ("jid", "name", "type")} == {
        "jid": "0" * 32,
        "name": "Flink Streaming Job",
        "type": "STREAMING",
    }
    consumer, producer = plan["nodes"]
    assert consumer["inputs"] == [
        {
            "id": producer["id"],
            "num": 0,
            "exchange": "pipelined_bounded",
            "ship_strategy": "REBALANCE",
        }
    ]
    assert "inputs" not in producer
    assert (consumer["parallelism"], consumer["operator"]) == (4, "")


def a_tree(env: StreamExecutionEnvironment) -> None:
    a = source(env, "in").map(str).name("a")
    b = a.map(str).name("b")
    b.map(str).name("c")
    b.map(str).name("d")
    a.map(str).name("e").map(str).name("f")


def test_a_description_as_a_tree_is_indented(env: StreamExecutionEnvironment) -> None:
    a_tree(env)
    (description,) = descriptions(env)
    assert description.split("<br/>") == [
        "Source: in",
        "+- a",
        "   :- b",
        "   :  :- c",
        "   :  +- d",
        "   +- e",
        "      +- f",
        "",
    ]


def test_a_description_as_a_cascade_is_one_line(env: StreamExecutionEnvironment) -> None:
    a_tree(env)
    assert descriptions(env, "CASCADING") == [
        "Source: in -&gt; a -&gt; (b -&gt; (c , d) , e -&gt; f)"
    ]


@pytest.mark.parametrize("mode", ["TREE", "CASCADING"])
def test_descriptions_replace_names_and_chained_sources_follow_the_head(
    env: StreamExecutionEnvironment, mode: str
) -> None:
    described = source(env, "a").set_description("all clicks")
    multiple_input([described, source(env, "b")], [list, list]).set_description("merge")
    end = "<br/>" if mode == "TREE" else ""
    assert descriptions(env, mode) == [f"merge [all clicks, Source: b]{end}"]


@pytest.mark.parametrize(
    ("name", "html"),
    [
        ('<b> & "c"', "&lt;b&gt; &amp; &quot;c&quot;"),
        ("caf\u00e9 \u2192 \u03b1", "caf&eacute; &rarr; &alpha;"),
        ("back\\slash 'quoted'", "back&#92;slash 'quoted'"),
        ("\U0001f600", "\U0001f600"),
    ],
)
def test_names_in_flinks_plan_are_escaped_for_html(
    env: StreamExecutionEnvironment, name: str, html: str
) -> None:
    source(env, "in").rebalance().map(str).name(name)
    assert descriptions(env)[0] == f"{html}<br/>"
