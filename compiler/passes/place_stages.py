"""Slot sharing groups, and the stage and slot of every task. A slot is one Spark task.

Vertices with the same group name are one slot sharing group. There is one exception: in a batch job, where vertices run
one after another, each pipelined region has its own group `default` (Flink: `setSlotSharing` and
`buildVertexRegionSlotSharingGroups` of `StreamingJobGraphGenerator`). The exception is only part of the plan: vertices
with the same name always share the slots on Spark.

As in Flink (`SlotSharingExecutionSlotAllocator`), a slot holds at most one subtask of each vertex of one slot sharing
group. A group needs as many slots as its widest vertex has subtasks. So subtask s goes to slot s of its group. The
groups of a stage follow one another, ordered by their first vertices. The tasks of a slot run one after another, since
a stage has no edges. Few slots are faster: a Spark task costs 40 to 70 ms before it does anything, and two vertices of
parallelism 2 keep two cores as busy in two slots as in four. If there are more cores than slots, put vertices that
should run side by side into separate groups, as in Flink.

A buffer for a later stage than the next passes through as opaque bytes. So a vertex with fewer inputs than outputs,
such as a source, is placed just before its first consumer. A vertex with fewer outputs is placed right after its
producers. Sources of DataFrames are in the first stage, whose input they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx
from networkx.utils import UnionFind

from opchain.compiler.graph.execution_plan import Exchange, ExecutionPlan, PlacedVertex, Stage
from opchain.compiler.graph.job_graph import JobEdge, JobGraph, JobVertex, ResultPartitionType
from opchain.compiler.graph.plan import JobGraphError, Plan, required
from opchain.compiler.passes.generate_stream_graph import DEFAULT_SLOT_SHARING_GROUP
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.errors import InternalError
from opchain.runtime.state.keys.key_groups import default_max_parallelism

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.graph.stream_graph import StreamNode


_HYBRIDS = (ResultPartitionType.HYBRID_FULL, ResultPartitionType.HYBRID_SELECTIVE)


def assign_slot_sharing_groups(plan: Plan) -> Plan:
    """Sets `slot_groups`: numbers from 0 in topological order. Equal numbers mean the same group.

    Raises:
        JobGraphError: A job with a hybrid exchange has a named group.
    """
    graph, order = required(plan.stream_graph), required(plan.vertex_order)
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
    """The invariant: every vertex has a slot sharing group."""
    if set(required(plan.slot_groups)) != set(required(plan.vertex_order)):
        raise InternalError("a vertex has no slot sharing group")


def _pipelined_regions(plan: Plan) -> UnionFind[int]:
    """Groups of vertices that are connected by pipelined exchanges, and so must run at the same time."""
    regions: UnionFind[int] = UnionFind(required(plan.vertex_order))
    for producer, data_sets in required(plan.data_sets).items():
        for data_set in data_sets:
            if data_set.result_partition_type is ResultPartitionType.PIPELINED_BOUNDED:
                for edge in data_set.edges:
                    regions.union(producer, edge.target)
    return regions


def _has_hybrid_exchange(plan: Plan) -> bool:
    return any(
        data_set.result_partition_type in _HYBRIDS
        for data_sets in required(plan.data_sets).values()
        for data_set in data_sets
    )


def _hybrid_refusal(node: StreamNode) -> str:
    return (
        f"{node.label} is in slot sharing group '{node.slot_sharing_group}', but the job has hybrid "
        "exchanges, which know only the group 'default'; drop the group, or use shuffle mode "
        "ALL_EXCHANGES_BLOCKING"
    )


def shared_slots(vertices: Sequence[PlacedVertex]) -> tuple[tuple[int, ...], ...]:
    """The tasks of each slot of a stage, in ascending order."""
    groups: dict[str | int, list[list[int]]] = {}
    for placed in vertices:
        slots = groups.setdefault(_group(placed), [])
        slots += ([] for _ in range(placed.parallelism - len(slots)))
        for subtask in range(placed.parallelism):
            slots[subtask].append(placed.tasks[subtask])
    return tuple(tuple(slot) for slots in groups.values() for slot in slots)


def _group(placed: PlacedVertex) -> str | int:
    """The name of the slot sharing group; or the vertex itself, if Spark delivers its input.

    A partition has the rows of one DataFrame. In unbounded jobs, rows come as buffers that name their source.
    """
    source = getattr(placed.vertex.head.node.spec, "source", None)
    reads_partitions = isinstance(source, SparkRowSource) and source.is_bounded
    return placed.first_task if reads_partitions else placed.vertex.slot_sharing_group


def place_stages(plan: Plan) -> Plan:
    """Sets `execution_plan`."""
    job_graph = required(plan.job_graph)
    placed: list[list[JobVertex]] = []
    for vertex_id, stage in _stages(job_graph).items():
        while len(placed) <= stage:
            placed.append([])
        placed[stage].append(job_graph.vertex(vertex_id))
    stages = []
    first_task = 0
    for index, vertices in enumerate(placed):
        members = []
        for vertex in vertices:
            parallelism, max_parallelism = _sizes(plan, vertex)
            members.append(PlacedVertex(vertex, index, first_task, parallelism, max_parallelism))
            first_task += parallelism
        stages.append(Stage(index, tuple(members), shared_slots(members)))
    execution_plan = ExecutionPlan(tuple(stages), ())
    sizes = {vertex_id: vertex.parallelism for vertex_id, vertex in execution_plan.placed().items()}
    exchanges = _exchanges(job_graph, sizes)
    return replace(plan, execution_plan=replace(execution_plan, exchanges=exchanges))


def exchanges_go_forward(plan: Plan) -> None:
    """The invariant: each edge leads to a later stage, each vertex is placed once, each task has one slot."""
    execution_plan = required(plan.execution_plan)
    job_graph = required(plan.job_graph)
    placed = execution_plan.placed()
    if len(placed) != len(job_graph.vertices) or not all(
        placed[edge.source_vertex].stage < placed[edge.target_vertex].stage
        for edge in job_graph.edges
    ):
        raise InternalError(
            "place_stages left a vertex without a stage, or an edge to an earlier stage"
        )
    for stage in execution_plan.stages:
        if sorted(task for slot in stage.slots for task in slot) != list(stage.tasks):
            raise InternalError("place_stages left a task without a slot, or gave it two")


def _stages(job_graph: JobGraph) -> dict[str, int]:
    stages = {vertex.id: 0 for vertex in job_graph.vertices}
    for stage, vertex_ids in enumerate(nx.topological_generations(job_graph.graph)):
        stages |= dict.fromkeys(vertex_ids, stage)
    for vertex in reversed(job_graph.vertices):
        if isinstance(getattr(vertex.head.node.spec, "source", None), SparkRowSource):
            continue  # a DataFrame can only be the input of the first stage
        outputs = job_graph.out_edges(vertex.id)
        if len(outputs) > len(job_graph.in_edges(vertex.id)):
            stages[vertex.id] = min(stages[edge.target_vertex] for edge in outputs) - 1
    return stages


def _sizes(plan: Plan, vertex: JobVertex) -> tuple[int, int]:
    """The numbers that the scheduler would choose: the environment's parallelism, within the vertex's bounds."""
    settings = plan.program.settings
    parallelism = vertex.parallelism
    if parallelism < 1:
        parallelism = settings.parallelism
        if vertex.max_parallelism > 0:
            parallelism = min(parallelism, vertex.max_parallelism)
    if vertex.max_parallelism > 0:
        return parallelism, vertex.max_parallelism
    return parallelism, default_max_parallelism(parallelism)


def _exchanges(job_graph: JobGraph, sizes: dict[str, int]) -> tuple[Exchange, ...]:
    channels: dict[str, int] = {}
    exchanges = []
    for edge in job_graph.edges:
        base = channels.get(edge.target_vertex, 0)
        channels[edge.target_vertex] = base + sizes[edge.source_vertex]
        exchanges.append(Exchange(edge, base, _label(job_graph, edge)))
    return tuple(exchanges)


def _label(job_graph: JobGraph, edge: JobEdge) -> str:
    head = job_graph.vertex(edge.target_vertex).head.node.name
    how = edge.ship_strategy.lower()
    if edge.partitioner.key_by is not None:
        how = f"{how} by {edge.partitioner.key_by.name}"
    return f"{head} ({how})"
