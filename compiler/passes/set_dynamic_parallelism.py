"""Chains -> the number of subtasks of each vertex.

In a static graph, it is the parallelism of the head. In a dynamic graph, the adaptive scheduler decides for vertices
whose parallelism the user has not set. Vertices that are connected by forward edges get the same number, so the
scheduler must decide on them together.

Flink: `setVertexParallelismsForDynamicGraphIfNecessary`, `ForwardGroupComputeUtil`, `JobVertexForwardGroup`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from networkx.utils import UnionFind

from opchain.compiler.graph.job_graph import VertexSize
from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.compiler.graph.plan import JobGraphError, Plan, required
from opchain.compiler.graph.transformation import UNSET
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.compiler.graph.stream_graph import StreamGraph


def set_dynamic_parallelism(plan: Plan) -> Plan:
    """Sets `vertex_sizes`.

    Raises:
        JobGraphError: A forward group has a max parallelism below its parallelism.
    """
    graph = required(plan.stream_graph)
    heads = [graph.node(chain.head) for chain in required(plan.chains)]
    sizes = {head.id: VertexSize(head.parallelism, head.max_parallelism) for head in heads}
    if graph.is_dynamic:
        if plan.program.settings.auto_parallelism:
            sizes |= {
                chain.head: VertexSize(UNSET, sizes[chain.head].max_parallelism)
                for chain in required(plan.chains)
                if not any(
                    graph.node(node).parallelism_configured
                    for node in chain.operators + chain.chained_sources
                )
            }
        for group in _forward_groups(plan):
            common = _common_size(graph, group, [sizes[head] for head in group])
            sizes |= dict.fromkeys(group, common)
    return replace(plan, vertex_sizes=sizes)


def forward_edges_join_equal_sizes(plan: Plan) -> None:
    """The invariant: a forward edge between vertices has the same number of subtasks at both ends."""
    sizes, heads = required(plan.vertex_sizes), required(plan.heads)
    for chain in required(plan.chains):
        for edge in chain.outputs:
            ends = sizes[chain.head].parallelism, sizes[heads[edge.target]].parallelism
            if plan.partitioner(edge.index).is_forward and ends[0] != ends[1]:
                raise InternalError(f"forward edge {edge} joins {ends[0]} and {ends[1]} subtasks")


def _forward_groups(plan: Plan) -> Iterable[list[int]]:
    """Groups of two or more vertices that are connected by forward edges, by their heads."""
    joined: UnionFind[int] = UnionFind()
    for chain in required(plan.chains):
        for edge in chain.outputs:
            if plan.partitioner(edge.index).kind is PartitionerKind.FORWARD:
                joined.union(chain.head, edge.target)
    return [sorted(group) for group in joined.to_sets()]


def _common_size(graph: StreamGraph, group: list[int], sizes: list[VertexSize]) -> VertexSize:
    """The size of a group: the parallelism that one vertex configures, and the smallest max parallelism that is set."""
    parallelism = max(size.parallelism for size in sizes)
    set_ones = [size.max_parallelism for size in sizes if size.max_parallelism > 0]
    max_parallelism = min(set_ones, default=UNSET)
    if parallelism > max_parallelism > 0:
        culprit = graph.node(group[[size.max_parallelism for size in sizes].index(max_parallelism)])
        names = ", ".join(graph.node(head).label for head in group)
        raise JobGraphError(
            f"{culprit.label} has max parallelism {max_parallelism}, but forward edges join it with "
            f"operators that run {parallelism} tasks ({names}); raise its max parallelism to "
            f"{parallelism} or more, or lower the parallelism"
        )
    return VertexSize(parallelism, max_parallelism)
