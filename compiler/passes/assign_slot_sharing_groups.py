"""Chains and data sets -> slot sharing groups, as numbers.

A named group is one group. Group `default` is one for all vertices of a streaming job; in a batch job,
where vertices run one after another, it is one per pipelined region. Flink: `setSlotSharing` and
`buildVertexRegionSlotSharingGroups` of `StreamingJobGraphGenerator`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from networkx.utils import UnionFind

from opchain.compiler.graph.job_graph import ResultPartitionType
from opchain.compiler.graph.plan import JobGraphError, made
from opchain.compiler.passes.generate_stream_graph import DEFAULT_SLOT_SHARING_GROUP
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan
    from opchain.compiler.graph.stream_graph import StreamNode

_HYBRIDS = (ResultPartitionType.HYBRID_FULL, ResultPartitionType.HYBRID_SELECTIVE)


def assign_slot_sharing_groups(plan: Plan) -> Plan:
    """Fills `slot_groups`: numbers counted from 0 in topological order; equal means one group.

    Raises:
        JobGraphError: A named group in a job with a hybrid exchange.
    """
    graph, order = made(plan.stream_graph), made(plan.vertex_order)
    regions = _pipelined_regions(plan)
    has_hybrid_exchange = _has_hybrid_exchange(plan)
    numbers: dict[str | int, int] = {}
    groups: dict[int, int] = {}
    for head in order:
        name = graph.node(head).slot_sharing_group
        group: str | int = name
        if name != DEFAULT_SLOT_SHARING_GROUP:
            if has_hybrid_exchange:
                raise JobGraphError(_hybrid_refusal(graph.node(head)))
        elif graph.is_batch:
            group = regions[head]
        groups[head] = numbers.setdefault(group, len(numbers))
    return replace(plan, slot_groups=groups)


def every_vertex_is_in_a_group(plan: Plan) -> None:
    """The invariant."""
    if set(made(plan.slot_groups)) != set(made(plan.vertex_order)):
        raise InternalError("a vertex has no slot sharing group")


def _pipelined_regions(plan: Plan) -> UnionFind[int]:
    """Vertices that must run at the same time, because one reads what the other is writing."""
    regions: UnionFind[int] = UnionFind(made(plan.vertex_order))
    for producer, data_sets in made(plan.data_sets).items():
        for data_set in data_sets:
            if data_set.result_partition_type is ResultPartitionType.PIPELINED_BOUNDED:
                for edge in data_set.edges:
                    regions.union(producer, edge.target)
    return regions


def _has_hybrid_exchange(plan: Plan) -> bool:
    return any(
        data_set.result_partition_type in _HYBRIDS
        for data_sets in made(plan.data_sets).values()
        for data_set in data_sets
    )


def _hybrid_refusal(node: StreamNode) -> str:
    return (
        f"{node.label} is in slot sharing group '{node.slot_sharing_group}', but the job has hybrid "
        "exchanges, which know only the group 'default'; drop the group, or use shuffle mode "
        "ALL_EXCHANGES_BLOCKING"
    )
