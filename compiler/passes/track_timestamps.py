"""Finds the edges whose records must carry timestamps: most jobs need them on few, many on none.

A timestamp is carried where it was made upstream and is read downstream. Flink carries them always;
here a record without costs nothing for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.program.operator_specs import ReduceSpec, TimestampsWatermarksSpec

if TYPE_CHECKING:
    from opchain.compiler.graph.stream_graph import StreamGraph, StreamNode


def edges_with_timestamps(graph: StreamGraph) -> frozenset[int]:
    """The indexes of these edges; nodes of the graph come producers first."""
    nodes = list(graph.nodes())
    made: dict[int, bool] = {}
    for node in nodes:
        made[node.id] = _makes_timestamps(graph, node) or any(
            made[edge.source] for edge in graph.in_edges(node.id)
        )
    read: dict[int, bool] = {}
    carrying = []
    for node in reversed(nodes):
        out_edges = graph.out_edges(node.id)
        read[node.id] = _reads_timestamps(graph, node) or (
            not _makes_timestamps(graph, node) and any(read[edge.target] for edge in out_edges)
        )
        carrying += [edge.index for edge in out_edges if made[node.id] and read[edge.target]]
    return frozenset(carrying)


def nodes_before_watermarks(graph: StreamGraph) -> frozenset[int]:
    """The nodes with an operator downstream that makes watermarks; none in batch mode."""
    if graph.is_batch:
        return frozenset()
    before: set[int] = set()
    for node in reversed(list(graph.nodes())):
        if node.id in before or _makes_watermarks(node):
            before.update(edge.source for edge in graph.in_edges(node.id))
    return frozenset(before)


def _makes_watermarks(node: StreamNode) -> bool:
    spec = node.spec
    return isinstance(spec, TimestampsWatermarksSpec) and spec.strategy.makes_watermarks


def _reads_timestamps(graph: StreamGraph, node: StreamNode) -> bool:
    """In batch mode the input of a keyed operator is sorted by them."""
    return (graph.is_batch and node.is_keyed) or node.spec.reads_timestamps()


def _makes_timestamps(graph: StreamGraph, node: StreamNode) -> bool:
    """In batch mode a reduce makes them too: its results come at the end of their key's time."""
    return node.spec.makes_timestamps() or (graph.is_batch and isinstance(node.spec, ReduceSpec))
