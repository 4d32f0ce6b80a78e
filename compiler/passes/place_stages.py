"""Places vertices in stages, and the tasks of a stage in slots. A slot is one task of Spark.

As in Flink (`SlotSharingExecutionSlotAllocator`), a slot holds at most one subtask of each vertex of one slot
sharing group, and a group needs as many slots as its widest vertex has subtasks. So subtask s goes to slot s
of its group; the groups of a stage follow one another, by their first vertices. A slot's tasks run one after
another, since a stage has no edges: two vertices of parallelism 2 keep two cores as busy in two slots as in
four, and a task of Spark's takes 40 to 70 ms before it does anything. Where there are more cores than slots,
the vertices that should run side by side are put into groups of their own, as they are in Flink.

In batch mode Flink numbers its default group by regions, whose slots later regions take over; here the name
alone counts.

A buffer for a later stage than the next passes through as opaque bytes. So a vertex with fewer inputs
than outputs, above all a source, is moved to just before its first consumer; one with fewer outputs
stays right behind its producers. Sources of DataFrames are in the first stage, whose input they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx

from opchain.compiler.graph.execution_plan import Exchange, ExecutionPlan, PlacedVertex, Stage
from opchain.compiler.graph.plan import made
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.errors import InternalError
from opchain.runtime.state.keys.key_groups import default_max_parallelism

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.graph.job_graph import JobEdge, JobGraph, JobVertex
    from opchain.compiler.graph.plan import Plan


def shared_slots(vertices: Sequence[PlacedVertex]) -> tuple[tuple[int, ...], ...]:
    """The tasks of each slot of a stage, in ascending order."""
    groups: dict[str | int, list[list[int]]] = {}
    for placed in vertices:
        slots = groups.setdefault(_group(placed), [])
        slots += ([] for _ in range(placed.parallelism - len(slots)))
        for subtask in range(placed.parallelism):
            slots[subtask].append(placed.first_task + subtask)
    return tuple(tuple(slot) for slots in groups.values() for slot in slots)


def _group(placed: PlacedVertex) -> str | int:
    """A group's name; what stands for the vertex alone where Spark feeds it.

    A partition brings the rows of one DataFrame. Where a job has no end its rows come as buffers, and whose
    they are is written on them.
    """
    return (
        placed.first_task if _reads_partitions(placed.vertex) else placed.vertex.slot_sharing_group
    )


def _reads_partitions(vertex: JobVertex) -> bool:
    source = getattr(vertex.head.node.spec, "source", None)
    return isinstance(source, SparkRowSource) and source.is_bounded


def place_stages(plan: Plan) -> Plan:
    """Fills `execution_plan`."""
    job_graph = made(plan.job_graph)
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
    """Every edge leads to a later stage, every vertex is placed once, every task is in one slot."""
    execution_plan = made(plan.execution_plan)
    job_graph = made(plan.job_graph)
    placed = execution_plan.placed()
    if len(placed) != len(job_graph.vertices) or not all(
        placed[edge.source_vertex].stage < placed[edge.target_vertex].stage
        for edge in job_graph.edges
    ):
        raise InternalError(
            "place_stages left a vertex without a stage, or an edge to an earlier stage"
        )
    for stage in execution_plan.stages:
        tasks = range(stage.first_task, stage.first_task + stage.parallelism)
        if sorted(task for slot in stage.slots for task in slot) != list(tasks):
            raise InternalError("place_stages left a task without a slot, or gave it two")


def _stages(job_graph: JobGraph) -> dict[str, int]:
    stages = {vertex.id: 0 for vertex in job_graph.vertices}
    for stage, vertex_ids in enumerate(nx.topological_generations(job_graph.graph)):
        stages |= dict.fromkeys(vertex_ids, stage)
    for vertex in reversed(job_graph.vertices):
        if _is_fed(vertex):
            continue
        outputs = job_graph.out_edges(vertex.id)
        if len(outputs) > len(job_graph.in_edges(vertex.id)):
            stages[vertex.id] = min(stages[edge.target_vertex] for edge in outputs) - 1
    return stages


def _is_fed(vertex: JobVertex) -> bool:
    """Whether Spark feeds its source: a DataFrame is the input of the first stage, and of no other."""
    return isinstance(getattr(vertex.head.node.spec, "source", None), SparkRowSource)


def _sizes(plan: Plan, vertex: JobVertex) -> tuple[int, int]:
    """The numbers left to the scheduler: the environment's parallelism, within the vertex's bounds."""
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
