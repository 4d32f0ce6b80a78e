"""The progress of a running job.

Any thread can ask a run for its progress, while the job runs and afterwards. Nothing is computed before, so a job that
nobody watches only stores the numbers of each finished task. A stage has the same name in Spark's UI, in errors and on
the terminal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.runtime.errors import one_line_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.program.vertex_program import JobProgram, StageProgram, VertexProgram


_LONGEST = 1_000
"""The longest vertex name that is shown, in characters."""


def stage_name(job: JobProgram, stage: StageProgram) -> str:
    """The stage's vertices, each with its parallelism."""
    return ", ".join(vertex_name(job.vertices[number]) for number in stage.vertices)


def vertex_name(vertex: VertexProgram) -> str:
    """The vertex with its parallelism."""
    return f"{one_line_name(vertex.name, _LONGEST)} x{vertex.parallelism}"


@dataclass(frozen=True, slots=True)
class StageProgress:
    """The current progress of one stage. `records` is the input of its finished and running tasks.

    On Spark a task is a slot, in one process a subtask.
    """

    name: str
    tasks: int
    running: int = 0
    done: int = 0
    records: int = 0

    @property
    def is_done(self) -> bool:
        """Whether all its tasks have succeeded."""
        return self.done == self.tasks


class JobProgress(ABC):
    """The progress of a job. The defaults suit an unbounded job: its history has the finished epochs."""

    def stages(self) -> Sequence[StageProgress]:
        """All stages of a bounded job, in their order."""
        return ()

    def finished_tasks(self) -> Mapping[int, TaskMetrics]:
        """The counts of the finished tasks of a bounded job, by task number, without metrics of functions."""
        return {}

    @abstractmethod
    def running_tasks(self) -> Mapping[int, TaskMetrics]:
        """The counts of running tasks so far, by task number. Tasks that have not reported yet are missing."""


class CountedProgress(JobProgress):
    """The progress of a job whose runner calls `started` and `finished` for each task."""

    def __init__(self, job: JobProgram) -> None:
        self._job = job
        self._running: dict[int, Callable[[], TaskMetrics] | None] = {}
        self._finished: dict[int, TaskMetrics] = {}

    def started(self, task: int, measure: Callable[[], TaskMetrics] | None = None) -> None:
        """Records that a task has started. `measure` returns its current counts."""
        self._running[task] = measure

    def finished(self, task: int, metrics: TaskMetrics) -> None:
        """A task has succeeded."""
        self._finished[task] = metrics.counts_only()
        self._running.pop(task, None)

    def finished_tasks(self) -> dict[int, TaskMetrics]:
        """See JobProgress."""
        return dict(self._finished)

    def running_tasks(self) -> dict[int, TaskMetrics]:
        """See JobProgress."""
        return {
            task: measure() for task, measure in self._running.copy().items() if measure is not None
        }

    def stages(self) -> list[StageProgress]:
        """All stages, in their order."""
        # The thread that runs the tasks is not stopped, so each copy is made in one atomic step.
        running, counts_now = self._running.copy(), self.running_tasks()
        done = dict(self._finished)
        found = []
        for stage in self._job.stages:
            counts = [done[task].records_in for task in stage.tasks if task in done]
            found.append(
                StageProgress(
                    name=stage_name(self._job, stage),
                    tasks=len(stage.tasks),
                    running=sum(task in running for task in stage.tasks),
                    done=len(counts),
                    records=sum(counts)
                    + sum(
                        counts_now[task].records_in
                        for task in stage.tasks
                        if task in counts_now and task not in done
                    ),
                )
            )
        return found
