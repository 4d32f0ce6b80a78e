from __future__ import annotations

import networkx as nx
import pytest

from opchain.compiler.graph.partitioner import Partitioner, PartitionerKind
from opchain.compiler.graph.stream_graph import (
    ChainingStrategy,
    StreamEdge,
    StreamGraph,
    StreamNode,
)
from opchain.compiler.graph.transformation import CallSite
from opchain.runtime.program.operator_specs import MapSpec


def node(number: int) -> StreamNode:
    return StreamNode(
        id=number,
        transformation_id=number,
        name=f"op {number}",
        spec=MapSpec(str),
        parallelism=1,
        parallelism_configured=False,
        max_parallelism=-1,
        slot_sharing_group="default",
        chaining_strategy=ChainingStrategy.ALWAYS,
        call_site=CallSite("/home/ann/clicks.py", number),
    )


def edge(index: int, source: int, target: int) -> StreamEdge:
    return StreamEdge(index, source, target, 0, Partitioner(PartitionerKind.FORWARD))


@pytest.fixture
def graph() -> StreamGraph:
    """1 -> 3, 1 -> 4, 1 -> 3 again, 2 -> 3: edges of one neighbour are not in a row."""
    made = StreamGraph("job", is_batch=False, is_dynamic=False)
    for number in (2, 1, 3, 4):
        made.add_node(node(number))
    for index, (source, target) in enumerate(((1, 3), (1, 4), (1, 3), (2, 3))):
        made.add_edge(edge(index, source, target))
    return made


def test_edges_keep_the_order_in_which_they_were_added(graph: StreamGraph) -> None:
    assert [each.index for each in graph.out_edges(1)] == [0, 1, 2]
    assert [each.index for each in graph.in_edges(3)] == [0, 2, 3]
    assert [each.index for each in graph.edges()] == [3, 0, 1, 2]
    assert graph.edge(2).target == 3
    assert graph.edge_count == 4


def test_nodes_keep_their_order_and_sources_are_sorted(graph: StreamGraph) -> None:
    assert [each.id for each in graph.nodes()] == [2, 1, 3, 4]
    assert [each.id for each in graph.sources()] == [1, 2]
    assert graph.node(3).label == "'op 3' (clicks.py:3)"


def test_the_networkx_view_has_the_same_nodes_and_edges(graph: StreamGraph) -> None:
    assert nx.ancestors(graph.graph, 3) == {1, 2}
    assert graph.graph.number_of_edges(1, 3) == 2
    assert graph.graph.edges[1, 3, 2]["edge"] is graph.edge(2)


def test_an_added_edge_appears_in_lists_that_were_read_before(graph: StreamGraph) -> None:
    assert len(graph.out_edges(4)) == len(graph.in_edges(4)) - 1
    graph.add_node(node(5))
    graph.add_edge(edge(4, 4, 5))
    assert [each.index for each in graph.out_edges(4)] == [4]
    assert [each.index for each in graph.in_edges(5)] == [4]


def test_a_node_id_or_an_edge_index_cannot_be_added_twice(graph: StreamGraph) -> None:
    with pytest.raises(AssertionError, match="stream node 3 exists"):
        graph.add_node(node(3))
    with pytest.raises(AssertionError, match="edge index 7 is out of order"):
        graph.add_edge(edge(7, 1, 4))


def test_an_unknown_node_or_edge_is_a_lookup_error(graph: StreamGraph) -> None:
    with pytest.raises(KeyError):
        graph.node(9)
    with pytest.raises(IndexError):
        graph.edge(9)
