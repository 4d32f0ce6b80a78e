"""What Spark runs on each partition of a stage in an epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.runtime.epochs.live_tasks import live_tasks
from opchain.runtime.spark.stage_tasks import StageTasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.checkpoint.epoch import Epoch
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.epochs.live_tasks import RestoredVertex
    from opchain.runtime.program.vertex_program import StageProgram
    from opchain.runtime.records.elements import Buffer
    from opchain.runtime.spark.stage_tasks import ShippedJob, ShippedVertex


class EpochStageTasks(StageTasks):
    """The function of a stage in one epoch.

    `restored` has what each vertex of the stage continues with, by the first task of the vertex.
    """

    def __init__(
        self,
        job: ShippedJob,
        stage: StageProgram,
        following: StageProgram | None,
        vertices: tuple[ShippedVertex, ...],
        *,
        run_id: str,
        epoch: Epoch,
        storage: CheckpointStorage,
        restored: dict[int, RestoredVertex | None],
    ) -> None:
        super().__init__(job, stage, following, vertices)
        self.run_id = run_id
        self.epoch = epoch
        self.storage = storage
        self.restored = restored

    def _run_task(
        self,
        task: int,
        buffers: Iterator[Buffer],
        frames: Iterable[bytes],  # noqa: ARG002 - all input of an epoch comes as buffers
    ) -> Iterator[Buffer]:
        """Runs the epoch of a task."""
        vertex = self._vertex_of(task)
        environment = replace(self._environment(), sink_writers=vertex.sink_writers)
        tasks = live_tasks(self.run_id)
        running = tasks.take(
            task,
            self.restored[vertex.first_task],
            self.storage,
            lambda: (self._load(task), environment),
            self.epoch.timestamp_ms,
        )
        yield from running.run_epoch(self.epoch, buffers, self.storage, environment.attempt_id)
        if self.epoch.drains:
            running.close()
        else:
            tasks.keep(running)
        self.job.count(running)
