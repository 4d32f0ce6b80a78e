import re

from programs import drawn

from opchain import StreamExecutionEnvironment
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.diagrams import plan_dot, stream_graph_dot
from opchain.compiler.plan.from_plan import stream_plan
from opchain.testing import plan_of


def test_a_box_for_each_vertex_and_an_arrow_for_each_edge() -> None:
    plan = plan_of(drawn("side_outputs"))
    dot = plan_dot(plan)
    assert dot.count("subgraph cluster_") == len(plan.vertices)
    assert len(re.findall(r"^  n\d+ -> n\d+", dot, re.MULTILINE)) == len(plan.edges)
    assert dot.count("style=dashed") == sum(not edge.is_chained for edge in plan.edges)
    assert "label=\"HASH by 'key', side output 'odd'\"" in dot
    assert dot.count("{") == dot.count("}")


def test_names_are_quoted() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 9).name('a "b"\\').map(str).name("two\nlines").print()
    dot = plan_dot(plan_of(env))
    assert r'label="Source: a \"b\"\\\nsource"' in dot
    assert r'label="two\nlines\nmap"' in dot


def test_a_stream_graph_has_no_boxes() -> None:
    plan = stream_plan(compile_program(drawn("join").program(), "operator-ids"))
    dot = stream_graph_dot(plan)
    assert "subgraph" not in dot
    assert len(re.findall(r"^  n\d+ -> n\d+ \[label=", dot, re.MULTILINE)) == len(plan.edges)
