"""Deals the tasks of a stage to slots, which are what Spark runs as tasks.

As in Flink (`SlotSharingExecutionSlotAllocator`), a slot holds at most one subtask of each vertex of one slot
sharing group, and a group needs as many slots as its widest vertex has subtasks. So subtask s goes to slot s
of its group; the groups of a stage follow one another, by their first vertices. A slot's tasks run one after
another, since a stage has no edges: two vertices of parallelism 2 keep two cores as busy in two slots as in
four, and a task of Spark's takes 40 to 70 ms before it does anything. Where there are more cores than slots,
the vertices that should run side by side are put into groups of their own, as they are in Flink.

In batch mode Flink numbers its default group by regions, whose slots later regions take over; here the name
alone counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.connectors.fed_source import FedSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.graph.execution_plan import PlacedVertex
    from opchain.compiler.graph.job_graph import JobVertex


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
    return isinstance(source, FedSource) and source.is_bounded
