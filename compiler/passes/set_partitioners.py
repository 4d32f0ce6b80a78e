"""Chained edges -> the partitioners that edges have in the end.

In a dynamic graph the numbers of subtasks may still change, so "forward" was only a wish: inside a
chain it holds, outside it becomes RESCALE or the HASH that it stood for. Flink:
`tryConvertPartitionerForDynamicGraph` of `StreamingJobGraphGenerator`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.graph.partitioner import Partitioner, PartitionerKind
from opchain.compiler.graph.plan import JobGraphError, made
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan
    from opchain.compiler.graph.stream_graph import StreamEdge, StreamGraph

_FORWARD = Partitioner(PartitionerKind.FORWARD)
_RESCALE = Partitioner(PartitionerKind.RESCALE)
_ONLY_WISHED_FOR = (
    PartitionerKind.FORWARD_FOR_UNSPECIFIED,
    PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH,
)


def set_partitioners(plan: Plan) -> Plan:
    """Fills `partitioners`: those that replace the stream edge's, by edge index.

    Raises:
        JobGraphError: One of the two internal forwards outside a dynamic graph.
    """
    graph = made(plan.stream_graph)
    chained_edges, chained_sources = made(plan.chained_edges), made(plan.chained_sources)
    replaced: dict[int, Partitioner] = {}
    for edge in graph.edges():
        kind = edge.partitioner.kind
        if kind not in _ONLY_WISHED_FOR:
            continue
        is_inside_head = edge.source in chained_sources
        if not is_inside_head or kind is PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH:
            _check_dynamic(graph, edge)
        if is_inside_head:
            continue  # it never meets the network, and Flink leaves it alone
        if edge.index in chained_edges:
            replaced[edge.index] = _FORWARD
        elif kind is PartitionerKind.FORWARD_FOR_UNSPECIFIED:
            replaced[edge.index] = _RESCALE
        else:
            replaced[edge.index] = Partitioner(PartitionerKind.HASH, key_by=edge.partitioner.key_by)
    return replace(plan, partitioners=replaced)


def cut_edges_have_real_partitioners(plan: Plan) -> None:
    """The invariant: between vertices there are no wishes left, and inside them nothing moves."""
    chained_edges = made(plan.chained_edges)
    for edge in made(plan.stream_graph).edges():
        partitioner = plan.partitioner(edge.index)
        if edge.index in chained_edges:
            if not partitioner.is_forward:
                raise InternalError(f"chained edge {edge} has partitioner {partitioner.kind.value}")
        elif partitioner.is_forward and partitioner.kind is not PartitionerKind.FORWARD:
            raise InternalError(f"cut edge {edge} still has partitioner {partitioner.kind.value}")


def _check_dynamic(graph: StreamGraph, edge: StreamEdge) -> None:
    if not graph.is_dynamic:
        mode = "a batch job without it" if graph.is_batch else "a streaming job"
        kind = edge.partitioner.kind.value.lower().replace("_", "-")
        raise JobGraphError(
            f"the edge from {graph.node(edge.source).label} to {graph.node(edge.target).label} is "
            f"{kind}, which the adaptive batch scheduler decides on, but this is {mode}; use "
            "forward() or key_by()"
        )
