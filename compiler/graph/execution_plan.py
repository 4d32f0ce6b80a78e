"""The ExecutionPlan: the stage and the slot of every subtask, and the channels of every exchange.

Stage k is one RDD. Its partitions are the slots, which the subtasks of its vertices share. All edges between two stages
use the shuffle between them, so every job is a sequence of stages, whatever its shape. Tasks are numbered by stage,
vertex and subtask.

Flink: `ExecutionGraph`, `ExecutionVertex`, `ExecutionSlotSharingGroup`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opchain.compiler.graph.job_graph import JobEdge, JobVertex


@dataclass(frozen=True, slots=True)
class PlacedVertex:
    """A vertex with its stage and its task numbers."""

    vertex: JobVertex
    stage: int
    first_task: int
    parallelism: int
    max_parallelism: int

    @property
    def tasks(self) -> range:
        """The task numbers of its subtasks, in their order."""
        return range(self.first_task, self.first_task + self.parallelism)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A job edge with its channels.

    Producer subtask s writes channel `channel_base + s` of each consumer subtask that it sends to. `label` is the name
    of the exchange in plans and errors.
    """

    edge: JobEdge
    channel_base: int
    label: str


@dataclass(frozen=True, slots=True)
class Stage:
    """The vertices that run together, and the tasks in each slot: partition p of the stage is slot p."""

    index: int
    vertices: tuple[PlacedVertex, ...]
    slots: tuple[tuple[int, ...], ...]

    @property
    def tasks(self) -> range:
        """The task numbers of all its vertices."""
        return range(self.vertices[0].tasks.start, self.vertices[-1].tasks.stop)


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """The stages in order, and the exchanges in the order of the job graph's edges."""

    stages: tuple[Stage, ...]
    exchanges: tuple[Exchange, ...]

    def placed(self) -> dict[str, PlacedVertex]:
        """The vertices by id."""
        return {vertex.vertex.id: vertex for stage in self.stages for vertex in stage.vertices}
