from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment

if TYPE_CHECKING:
    from opchain.compiler.graph.job_graph import JobGraph


@pytest.fixture
def job_graph() -> JobGraph:
    """in ~> left, in ~> right, left and right ~> end."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    top: Any = env.from_sequence(1, 9).name("in")
    left = top.rebalance().map(int).name("left").map(int).name("more")
    right = top.rebalance().map(int).name("right")
    left.union(right).rebalance().map(int).name("end")
    graph = compile_program(env.program(), "job-graph").job_graph
    assert graph is not None
    return graph


def heads(graph: JobGraph, ids: list[str]) -> list[str]:
    return [graph.vertex(vertex_id).head.node.name for vertex_id in ids]


def test_vertices_are_found_by_id_in_topological_order(job_graph: JobGraph) -> None:
    names = [vertex.head.node.name for vertex in job_graph.vertices]
    assert names[0] == "Source: in"
    assert names[-1] == "end"
    for vertex in job_graph.vertices:
        assert job_graph.vertex(vertex.id) is vertex
    with pytest.raises(KeyError):
        job_graph.vertex("unknown")


def test_edges_are_found_from_both_ends(job_graph: JobGraph) -> None:
    by_name = {vertex.head.node.name: vertex.id for vertex in job_graph.vertices}
    outputs = job_graph.out_edges(by_name["Source: in"])
    assert heads(job_graph, [edge.target_vertex for edge in outputs]) == ["left", "right"]
    inputs = job_graph.in_edges(by_name["end"])
    assert heads(job_graph, [edge.source_vertex for edge in inputs]) == ["left", "right"]
    assert job_graph.in_edges(by_name["Source: in"]) == []
    assert {edge.ship_strategy for edge in job_graph.edges} == {"REBALANCE"}


def test_a_vertex_knows_its_head_and_its_chain(job_graph: JobGraph) -> None:
    (left,) = (vertex for vertex in job_graph.vertices if vertex.head.node.name == "left")
    assert left.head_id == left.operators[0].node.id
    assert [(edge.source, edge.target) for edge in left.chained_edges()] == [
        (left.head_id, left.operators[1].node.id)
    ]
