"""Everything found out about chains -> the JobGraph. Nothing is decided here any more.

Flink: `createJobVertex` and `connect` of `StreamingJobGraphGenerator`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.graph.job_graph import (
    ChainedOperator,
    DistributionPattern,
    JobEdge,
    JobGraph,
    JobVertex,
)
from opchain.compiler.graph.plan import made
from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.passes.rejections import JobGraphError
from opchain.runtime.errors import InternalError
from opchain.runtime.state.keys.key_groups import MAX_PARALLELISM_LIMIT, default_max_parallelism

if TYPE_CHECKING:
    from opchain.compiler.graph.job_graph import Chain, VertexSize
    from opchain.compiler.graph.plan import Plan
    from opchain.compiler.graph.stream_graph import StreamNode


def create_job_graph(plan: Plan) -> Plan:
    """Fills `job_graph`.

    Raises:
        JobGraphError: A parallelism beyond the largest number of key groups.
    """
    graph, chains = made(plan.stream_graph), made(plan.chains)
    by_head = {chain.head: chain for chain in chains}
    in_edges: dict[int, list[JobEdge]] = {chain.head: [] for chain in chains}
    for chain in chains:  # Flink connects the vertices in the order in which it made them
        for edge in _job_edges(plan, chain):
            in_edges[edge.edge.target].append(edge)
    order = made(plan.vertex_order)
    job_graph = JobGraph(
        job_name=graph.job_name,
        is_batch=graph.is_batch,
        is_dynamic=graph.is_dynamic,
        vertices=tuple(_job_vertex(plan, by_head[head]) for head in order),
        edges=tuple(edge for head in order for edge in in_edges[head]),
        creation_order=tuple(chain.head for chain in chains),
    )
    return replace(plan, job_graph=job_graph)


def job_graph_holds_everything(plan: Plan) -> None:
    """The invariant: every stream node is in one vertex, every stream edge in a chain or cut."""
    graph, job_graph = made(plan.stream_graph), made(plan.job_graph)
    operators = sum(
        len(vertex.operators) + len(vertex.chained_sources) for vertex in job_graph.vertices
    )
    inside = sum(1 for vertex in job_graph.vertices for _ in vertex.chained_edges())
    if operators != sum(1 for _ in graph.nodes()):
        raise InternalError("the JobGraph does not hold every operator exactly once")
    if inside + len(job_graph.edges) != graph.edge_count:
        raise InternalError("the JobGraph does not hold every edge exactly once")


def _job_vertex(plan: Plan, chain: Chain) -> JobVertex:
    graph = made(plan.stream_graph)
    head = graph.node(chain.head)
    size = made(plan.vertex_sizes)[chain.head]
    return JobVertex(
        id=made(plan.operator_ids)[chain.head],
        name=made(plan.vertex_names)[chain.head],
        parallelism=size.parallelism,
        max_parallelism=size.max_parallelism,
        effective_max_parallelism=_effective_max_parallelism(head, size),
        slot_sharing_group=head.slot_sharing_group,
        slot_sharing_group_index=made(plan.slot_groups)[chain.head],
        operators=tuple(_chained_operator(plan, node) for node in chain.operators),
        chained_sources=tuple(
            replace(_chained_operator(plan, node), user_defined_operator_id=None)
            for node in chain.chained_sources
        ),
        operator_id_order=chain.children_first,
    )


def _chained_operator(plan: Plan, node_id: int) -> ChainedOperator:
    graph, chained_edges = made(plan.stream_graph), made(plan.chained_edges)
    node = graph.node(node_id)
    return ChainedOperator(
        node=node,
        operator_id=made(plan.operator_ids)[node_id],
        user_defined_operator_id=None if node.uid_hash is None else node.uid_hash.lower(),
        inputs=tuple(edge for edge in graph.in_edges(node_id) if edge.index in chained_edges),
    )


def _effective_max_parallelism(head: StreamNode, size: VertexSize) -> int:
    if size.parallelism > MAX_PARALLELISM_LIMIT:
        raise JobGraphError(
            f"{head.label} runs {size.parallelism} tasks, but keys fall into {MAX_PARALLELISM_LIMIT} "
            f"groups at most; set a parallelism up to {MAX_PARALLELISM_LIMIT}"
        )
    if size.max_parallelism > 0 or size.parallelism == UNSET:
        return size.max_parallelism
    return default_max_parallelism(size.parallelism)


def _job_edges(plan: Plan, chain: Chain) -> list[JobEdge]:
    ids, heads = made(plan.operator_ids), made(plan.heads)
    read = {
        edge.index: (number, data_set.result_partition_type)
        for number, data_set in enumerate(made(plan.data_sets)[chain.head])
        for edge in data_set.edges
    }
    edges = []
    for edge in chain.outputs:
        partitioner = plan.partitioner(edge.index)
        dataset_index, result_partition_type = read[edge.index]
        edges.append(
            JobEdge(
                source_vertex=ids[chain.head],
                target_vertex=ids[heads[edge.target]],
                edge=edge,
                partitioner=partitioner,
                distribution_pattern=(
                    DistributionPattern.POINTWISE
                    if partitioner.kind.is_pointwise
                    else DistributionPattern.ALL_TO_ALL
                ),
                result_partition_type=result_partition_type,
                dataset_index=dataset_index,
            )
        )
    return edges
