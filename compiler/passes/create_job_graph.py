"""Chains -> names and order of the vertices -> the JobGraph.

A name is like `Source: a -> Map -> (Filter, Sink: out)`. The vertices are in the topological order in which
Flink prints, numbers and schedules them.

Flink: `createChainedName`, `addVertexIndexPrefixInVertexName`, `createJobVertex` and `connect` of
`StreamingJobGraphGenerator`; `JobGraph.getVerticesSortedTopologicallyFromSources`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.graph.job_graph import (
    Chain,
    ChainedOperator,
    DistributionPattern,
    JobEdge,
    JobGraph,
    JobVertex,
    VertexSize,
    chain_text,
)
from opchain.compiler.graph.plan import JobGraphError, Plan, required
from opchain.compiler.graph.transformation import UNSET
from opchain.runtime.errors import InternalError
from opchain.runtime.state.keys.key_groups import MAX_PARALLELISM_LIMIT, default_max_parallelism

if TYPE_CHECKING:
    from opchain.compiler.graph.stream_graph import StreamNode


def name_vertices(plan: Plan) -> Plan:
    """Sets `vertex_names`."""
    names = {chain.head: _chain_name(plan, chain) for chain in required(plan.chains)}
    if plan.program.settings.vertex_name_index_prefix:
        for number, head in enumerate(required(plan.vertex_order)):
            names[head] = f"[vertex-{number}]{names[head]}"
    return replace(plan, vertex_names=names)


def every_vertex_has_a_name(plan: Plan) -> None:
    """The invariant: every vertex has a name."""
    if set(required(plan.vertex_names)) != set(required(plan.vertex_order)):
        raise InternalError("a vertex has no name")


def _chain_name(plan: Plan, chain: Chain) -> str:
    graph, chained_edges = required(plan.stream_graph), required(plan.chained_edges)
    names = {number: graph.node(number).name for number in chain.operators}
    if chain.chained_sources:
        sources = ", ".join(graph.node(source).name for source in chain.chained_sources)
        names[chain.head] += f" [{sources}]"
    children = {
        number: [edge.target for edge in graph.out_edges(number) if edge.index in chained_edges]
        for number in chain.operators
    }
    return chain_text(chain.head, names, children)


def sort_vertices(plan: Plan) -> Plan:
    """Sets `vertex_order`.

    Vertices without inputs come first, in the order of creation. From the start of that list, each vertex then adds the
    consumers of its data sets whose producers are all listed. An added vertex does the same immediately.
    """
    chains = required(plan.chains)
    consumers = {
        head: [edge.target for data_set in sets for edge in data_set.edges]
        for head, sets in required(plan.data_sets).items()
    }
    missing = dict.fromkeys(consumers, 0)
    for targets in consumers.values():
        for target in targets:
            missing[target] += 1
    order = [chain.head for chain in chains if not missing[chain.head]]
    # Flink removes the vertices without inputs from its list before it looks at any consumer.
    for head in order:
        for target in consumers[head]:
            missing[target] -= 1
    for start in tuple(order):
        walks = [iter(consumers[start])]
        while walks:
            added = next((target for target in walks[-1] if missing[target] == 0), None)
            if added is None:
                walks.pop()
                continue
            missing[added] = -1  # listed: do not add it again
            order.append(added)
            for target in consumers[added]:
                missing[target] -= 1
            walks.append(iter(consumers[added]))
    return replace(plan, vertex_order=tuple(order))


def producers_come_first(plan: Plan) -> None:
    """The invariant: every vertex is listed once, after all of its producers."""
    place = {head: number for number, head in enumerate(required(plan.vertex_order))}
    chains = required(plan.chains)
    if len(place) != len(chains) or len(required(plan.vertex_order)) != len(chains):
        raise InternalError("the topological order does not list every vertex once")
    for chain in chains:
        for edge in chain.outputs:
            if place[chain.head] >= place[edge.target]:
                raise InternalError(f"vertex {edge.target} is listed before its producer")


def create_job_graph(plan: Plan) -> Plan:
    """Sets `job_graph`.

    Raises:
        JobGraphError: A parallelism is greater than the maximum number of key groups.
    """
    graph, chains = required(plan.stream_graph), required(plan.chains)
    by_head = {chain.head: chain for chain in chains}
    in_edges: dict[int, list[JobEdge]] = {chain.head: [] for chain in chains}
    for chain in chains:  # Flink connects the vertices in the order of their creation
        for edge in _job_edges(plan, chain):
            in_edges[edge.edge.target].append(edge)
    order = required(plan.vertex_order)
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
    """The invariant: every stream node is in exactly one vertex.

    Every stream edge is inside a chain or between vertices.
    """
    graph, job_graph = required(plan.stream_graph), required(plan.job_graph)
    operators = sum(
        len(vertex.operators) + len(vertex.chained_sources) for vertex in job_graph.vertices
    )
    inside = sum(1 for vertex in job_graph.vertices for _ in vertex.chained_edges())
    if operators != sum(1 for _ in graph.nodes()):
        raise InternalError("the JobGraph does not hold every operator exactly once")
    if inside + len(job_graph.edges) != graph.edge_count:
        raise InternalError("the JobGraph does not hold every edge exactly once")


def _job_vertex(plan: Plan, chain: Chain) -> JobVertex:
    graph = required(plan.stream_graph)
    head = graph.node(chain.head)
    size = required(plan.vertex_sizes)[chain.head]
    return JobVertex(
        id=required(plan.operator_ids)[chain.head],
        name=required(plan.vertex_names)[chain.head],
        parallelism=size.parallelism,
        max_parallelism=size.max_parallelism,
        effective_max_parallelism=_effective_max_parallelism(head, size),
        slot_sharing_group=head.slot_sharing_group,
        slot_sharing_group_index=required(plan.slot_groups)[chain.head],
        operators=tuple(_chained_operator(plan, node) for node in chain.operators),
        chained_sources=tuple(
            replace(_chained_operator(plan, node), user_defined_operator_id=None)
            for node in chain.chained_sources
        ),
        operator_id_order=chain.children_first,
    )


def _chained_operator(plan: Plan, node_id: int) -> ChainedOperator:
    graph, chained_edges = required(plan.stream_graph), required(plan.chained_edges)
    node = graph.node(node_id)
    return ChainedOperator(
        node=node,
        operator_id=required(plan.operator_ids)[node_id],
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
    ids, heads = required(plan.operator_ids), required(plan.heads)
    read = {
        edge.index: (number, data_set.result_partition_type)
        for number, data_set in enumerate(required(plan.data_sets)[chain.head])
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
