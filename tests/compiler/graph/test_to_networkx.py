"""The networkx graphs of the public API."""

from __future__ import annotations

import networkx as nx

from opchain import StreamExecutionEnvironment


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment()
    env.set_parallelism(2)
    words = env.from_sequence(1, 9).map(str).name("text").uid("text")
    counts = words.key_by(len).reduce(lambda a, b: a + b).name("concatenate")
    words.union(counts).print()
    return env


def test_the_stream_graph_is_a_plain_graph() -> None:
    graph = environment().get_stream_graph().to_networkx()
    names = nx.get_node_attributes(graph, "name")
    assert [names[node] for node in nx.lexicographical_topological_sort(graph)] == [
        "Source: Sequence Source",
        "text",
        "concatenate",
        "Sink: Print to Std. Out",
    ]
    text = next(node for node in graph if names[node] == "text")
    assert graph.nodes[text]["uid"] == "text"
    assert graph.nodes[text]["parallelism"] == 2
    assert graph.nodes[text]["operator"] == "Map"
    assert graph.nodes[text]["call_site"].startswith("test_to_networkx.py:")
    assert {names[node] for node in nx.descendants(graph, text)} == {
        "concatenate",
        "Sink: Print to Std. Out",
    }
    kinds = [data["partitioner"] for _, _, data in graph.out_edges(text, data=True)]
    assert sorted(kinds) == ["FORWARD", "HASH"]


def test_the_job_graph_is_the_quotient_by_its_chains() -> None:
    env = environment()
    job_graph, stream_graph = env.get_job_graph(), env.get_stream_graph()
    graph = job_graph.to_networkx()
    assert nx.is_directed_acyclic_graph(graph)
    chains = [data["operators"] for _, data in graph.nodes(data=True)]
    assert chains == [
        ["Source: Sequence Source", "text"],
        ["concatenate"],
        ["Sink: Print to Std. Out"],
    ]
    assert [data["ship_strategy"] for _, _, data in graph.edges(data=True)] == [
        "HASH",
        "FORWARD",
        "FORWARD",
    ]
    blocks = [
        {operator.node.id for operator in (*vertex.chained_sources, *vertex.operators)}
        for vertex in job_graph.vertices
    ]
    quotient = nx.quotient_graph(nx.DiGraph(stream_graph.graph), blocks)
    assert nx.is_isomorphic(quotient, nx.DiGraph(graph))


def test_operators_can_be_added_after_get_job_graph() -> None:
    env = environment()
    before = len(env.get_job_graph().vertices)
    env.from_sequence(1, 2).print()
    assert len(env.get_job_graph().vertices) > before
