"""How far a job on Spark has come: tasks by Spark's status tracker, their numbers by an accumulator.

Both are Spark's public interfaces, and `live_counts.py` has the numbers of tasks that still run. The tracker answers from what the driver knows anyway, and only when it is
asked. The accumulator brings home what each task that ends has counted, by task: an attempt that is repeated
replaces the one before, and is not counted twice. 400 empty tasks took 16.9 s with a number each and without
(medians of six rounds on two busy cores), at best 11.3 s and 11.1 s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.job.progress import StageProgress, stage_name
from opchain.runtime.spark.live_counts import LiveCounts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import Accumulator, SparkContext
    from pyspark.status import SparkStageInfo, StatusTracker

    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.program.vertex_program import JobProgram, StageProgram


class LatestByTask:
    """Dictionaries, of which later entries replace earlier ones. Spark: an `AccumulatorParam` by its methods."""

    def zero(self, value: dict[int, Any]) -> dict[int, Any]:  # noqa: ARG002 - the contract
        """An empty one."""
        return {}

    def addInPlace(  # noqa: N802 - Spark's name
        self, value1: dict[int, Any], value2: dict[int, Any]
    ) -> dict[int, Any]:
        """The first one with the entries of the second."""
        value1.update(value2)
        return value1


class SparkProgress:
    """The progress of one job.

    Args:
        context: Where it runs.
        group: Its job group.
        job: The job.
    """

    def __init__(self, context: SparkContext, group: str, job: JobProgram) -> None:
        self._tracker = context.statusTracker()
        self._group = group
        self._job = job
        self.live = LiveCounts()
        self.finished: Accumulator[dict[int, TaskMetrics]] = context.accumulator(
            {},
            LatestByTask(),  # type: ignore[arg-type]  # it has the methods
        )

    def finished_tasks(self) -> dict[int, TaskMetrics]:
        """See JobProgress."""
        return dict(self.finished.value)

    def running_tasks(self) -> dict[int, TaskMetrics]:
        """See JobProgress."""
        finished = self.finished.value
        return {
            task: counts
            for task, counts in self.live.running_tasks().items()
            if task not in finished
        }

    def stages(self) -> list[StageProgress]:
        """All stages, in their order; those that Spark has not heard of yet have nothing done.

        Empty where Spark no longer answers.
        """
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark

        try:
            known = list(_stage_infos(self._tracker, self._group))
        except (Py4JError, OSError):  # the session was stopped
            return []
        known_tasks = self.running_tasks() | self.finished_tasks()
        counts = {task: metrics.records_in for task, metrics in known_tasks.items()}
        return [self._progress(stage, known, counts) for stage in self._job.stages]

    def has_repeated_stages(self) -> bool:
        """Whether Spark began a stage again, because what its tasks had sent was lost.

        False where Spark no longer answers.
        """
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark

        try:
            return any(info.currentAttemptId for info in _stage_infos(self._tracker, self._group))
        except (Py4JError, OSError):
            return False

    def _progress(
        self, stage: StageProgram, known: list[SparkStageInfo], counts: dict[int, int]
    ) -> StageProgress:
        name = stage_name(self._job, stage)
        tasks = range(stage.first_task, stage.first_task + stage.parallelism)
        records = sum(counts.get(task, 0) for task in tasks)
        # Spark may run more stages than the job has: those that bring a DataFrame here.
        info = next((info for info in known if info.name == name), None)
        if info is None:
            return StageProgress(name, len(stage.slots), records=records)
        known.remove(info)
        return StageProgress(
            name, len(stage.slots), info.numActiveTasks, info.numCompletedTasks, records
        )


def _stage_infos(tracker: StatusTracker, group: str) -> Iterator[SparkStageInfo]:
    """What Spark knows of the stages of a group's jobs, in the order of their numbers."""
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    for number in sorted({int(stage) for job in jobs if job is not None for stage in job.stageIds}):
        info = tracker.getStageInfo(number)
        if info is not None:
            yield info
