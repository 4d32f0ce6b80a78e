"""A job's stages as one line of RDDs: `mapPartitions`, a shuffle, `mapPartitions`, a shuffle, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.job.slot_resources import largest
from opchain.runtime.spark.exchange import shuffled, written_raw
from opchain.runtime.spark.job_label import stage_label, stage_name
from opchain.runtime.spark.stage_resources import with_resources
from opchain.runtime.spark.stage_tasks import ShippedVertex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark import RDD, Broadcast, SparkContext

    from opchain.runtime.job.slot_resources import SlotResources
    from opchain.runtime.spark.stage_tasks import StageTasks
    from opchain.runtime.task.vertex_program import JobProgram, StageProgram

    MakeTasks = Callable[[StageProgram, StageProgram | None, tuple[ShippedVertex, ...]], StageTasks]

INLINE_BYTES = 64 * 1024
"""A shorter vertex rides along with each task of its stage: a broadcast takes the driver 10 ms."""


class StageLine:
    """Draws a job's stages, as often as they are to run.

    Args:
        context: Where they run.
        job: The job.
        shipped: The pickle of each vertex.
        resources: What a slot of each vertex needs, None where nothing was said; empty for no resources.
    """

    def __init__(
        self,
        context: SparkContext,
        job: JobProgram,
        shipped: Sequence[bytes],
        resources: Sequence[SlotResources | None] = (),
    ) -> None:
        self._context = context
        self._job = job
        self._resources = resources
        self._broadcasts: list[Broadcast[bytes]] = []
        self._vertices = [self._shipped_vertex(number, data) for number, data in enumerate(shipped)]

    def last_stage(self, frames: RDD[Any], make_tasks: MakeTasks) -> RDD[bytes]:
        """The RDD of the last stage, on those of the stages before.

        Args:
            frames: What the first stage reads, with as many partitions as it has slots.
            make_tasks: The function of a stage, from the stage, the one behind it and its vertices.
        """
        stages = self._job.stages
        for stage, following in zip(stages, (*stages[1:], None), strict=True):
            vertices = tuple(self._vertices[number] for number in stage.vertices)
            tasks = make_tasks(stage, following, vertices)
            with stage_label(self._context, self._job, stage):
                name = stage_name(self._job, stage)
                output = written_raw(frames.mapPartitionsWithIndex(tasks)).setName(name)
                output = with_resources(output, self._slots(stage), name)
                if following is None:
                    return output
                target = f"to {stage_name(self._job, following)}"
                frames = shuffled(output, len(following.slots), target)
        raise AssertionError("a job has a last stage")

    def close(self) -> None:
        """Drops what was broadcast."""
        for broadcast in self._broadcasts:
            broadcast.destroy()

    def _shipped_vertex(self, number: int, data: bytes) -> ShippedVertex:
        vertex = self._job.vertices[number]
        if len(data) <= INLINE_BYTES:
            return ShippedVertex(vertex.name, vertex.first_task, vertex.parallelism, data)
        broadcast = self._context.broadcast(data)
        self._broadcasts.append(broadcast)
        return ShippedVertex(vertex.name, vertex.first_task, vertex.parallelism, broadcast)

    def _slots(self, stage: StageProgram) -> SlotResources | None:
        asked = (self._resources[number] for number in stage.vertices) if self._resources else ()
        return largest(slots for slots in asked if slots is not None)
