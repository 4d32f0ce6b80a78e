from __future__ import annotations

import re

from programs import drawn

from opchain import StreamExecutionEnvironment
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.explain import (
    plan_dot,
    plan_mermaid,
    stream_graph_dot,
    stream_graph_mermaid,
)
from opchain.compiler.plan.from_plan import stream_plan
from opchain.testing import plan_of


def test_dot_has_a_box_for_each_vertex_and_an_arrow_for_each_edge() -> None:
    plan = plan_of(drawn("side_outputs"))
    dot = plan_dot(plan)
    assert dot.count("subgraph cluster_") == len(plan.vertices)
    assert len(re.findall(r"^  n\d+ -> n\d+", dot, re.MULTILINE)) == len(plan.edges)
    assert dot.count("style=dashed") == sum(not edge.is_chained for edge in plan.edges)
    assert "label=\"HASH by 'key', side output 'odd'\"" in dot
    assert dot.count("{") == dot.count("}")


def test_dot_quotes_names() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).name('a "b"\\').map(str).name("two\nlines").print()
    dot = plan_dot(plan_of(env))
    assert r'label="Source: a \"b\"\\\nsource"' in dot
    assert r'label="two\nlines\nmap"' in dot


def test_dot_of_a_stream_graph_has_no_boxes() -> None:
    plan = stream_plan(compile_program(drawn("join").program(), "operator-ids"))
    dot = stream_graph_dot(plan)
    assert "subgraph" not in dot
    assert len(re.findall(r"^  n\d+ -> n\d+ \[label=", dot, re.MULTILINE)) == len(plan.edges)


def test_mermaid_has_a_subgraph_for_each_vertex_and_an_arrow_for_each_edge() -> None:
    plan = plan_of(drawn("side_outputs"))
    chart = plan_mermaid(plan)
    assert chart.startswith("flowchart LR\n")
    assert chart.count("subgraph vertex") == chart.count("\n  end\n") == len(plan.vertices)
    assert len(re.findall(r"^  n\d+ (-->|-\.->)", chart, re.MULTILINE)) == len(plan.edges)
    assert chart.count("-.->") == sum(not edge.is_chained for edge in plan.edges)


def test_mermaid_escapes_markup_in_names() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).name('end "x"];').map(str).name("a\n#b").print()
    chart = plan_mermaid(plan_of(env))
    assert '["Source: end #34;x#34;#93;#59;"]' in chart
    assert '["a #35;b"]' in chart


def test_mermaid_of_a_stream_graph_has_no_subgraphs() -> None:
    plan = stream_plan(compile_program(drawn("diamond").program(), "operator-ids"))
    chart = stream_graph_mermaid(plan)
    assert "subgraph" not in chart
    assert '-->|"REBALANCE, input 2"|' in chart
