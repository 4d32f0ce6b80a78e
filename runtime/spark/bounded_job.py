"""A bounded job as one Spark job: a line of `mapPartitions` with a shuffle between each two."""

from __future__ import annotations

import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import TaskFailedError
from opchain.runtime.job_dependencies import NO_DEPENDENCIES
from opchain.runtime.job_outcome import commit, print_lines, read_outcome
from opchain.runtime.job_run import JobRun
from opchain.runtime.shipping import ship_vertices
from opchain.runtime.slot_resources import largest
from opchain.runtime.spark.exchange import collected, from_frame, shuffled, written_raw
from opchain.runtime.spark.job_failure import failure_of
from opchain.runtime.spark.job_files import provide_files
from opchain.runtime.spark.job_label import SCHEDULER_POOL, job_group, stage_label, stage_name
from opchain.runtime.spark.session import active_or_new_session
from opchain.runtime.spark.stage_resources import with_resources
from opchain.runtime.spark.stage_tasks import ShippedJob, ShippedVertex, StageTasks
from opchain.runtime.spark.worker_path import provide_modules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.job_dependencies import JobDependencies
    from opchain.runtime.job_outcome import JobOutcome
    from opchain.runtime.slot_resources import SlotResources
    from opchain.runtime.task.vertex_program import JobProgram, StageProgram
    from pyspark import RDD, Broadcast, SparkContext
    from pyspark.sql import SparkSession

INLINE_BYTES = 64 * 1024
"""A shorter vertex rides along with each task of its stage: a broadcast takes the driver 10 ms."""


def spark_run(
    job: JobProgram,
    dependencies: JobDependencies = NO_DEPENDENCIES,
    resources: Sequence[SlotResources | None] = (),
) -> JobRun:
    """The run of a job on the active session, or a new one.

    Args:
        job: The job.
        dependencies: The files that it needs.
        resources: What a slot of each vertex needs, None where nothing was said; empty for no resources.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
        SparkUnavailableError: There is no Spark to run on.
    """
    shipped = ship_vertices(job)
    session = active_or_new_session()
    bounded = BoundedJob(session, job, shipped, dependencies, resources)
    return JobRun(bounded.run, bounded.cancel, waits_for_others=True)


class BoundedJob:
    """One job on a session. `run` may be called once, `cancel` at any time, from any thread.

    The job runs in the scheduler pool of the thread that makes it.
    """

    def __init__(
        self,
        session: SparkSession,
        job: JobProgram,
        shipped: Sequence[bytes],
        dependencies: JobDependencies = NO_DEPENDENCIES,
        resources: Sequence[SlotResources | None] = (),
    ) -> None:
        self.job = job
        self.group = f"opchain {uuid.uuid4()}"
        self._session = session
        self._context: SparkContext = session.sparkContext
        self._shipped = shipped
        self._dependencies = dependencies
        self._resources = resources
        self._broadcasts: list[Broadcast[bytes]] = []
        self._pool = self._context.getLocalProperty(SCHEDULER_POOL)
        self._cancelled = threading.Event()

    def run(self) -> JobOutcome:
        """Runs all stages, then commits and prints.

        Raises:
            Exception: What a user's function raised, with notes that say where; its cause is the traceback
                of the executor.
            StreamError: The job failed for another reason.
        """
        with job_group(self._context, self.group, self._description(), self._pool):
            outcome = self._outcome()
        if self._cancelled.is_set():
            outcome.close()
            raise TaskFailedError("the job was cancelled before its results were committed")
        commit(self.job, outcome)
        print_lines(outcome)
        return outcome

    def cancel(self) -> None:
        """Ends the job's tasks, also if they are to start yet; other jobs of the session go on."""
        self._cancelled.set()
        self._context._jsc.sc().cancelJobGroupAndFutureJobs(self.group)  # noqa: SLF001 - not in Python yet

    def _outcome(self) -> JobOutcome:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
        from pyspark.errors import PySparkException  # noqa: PLC0415

        try:
            with _python_executable(self._context, self._dependencies.python_executable):
                last = self._last_stage()
            with stage_label(self._context, self.job, self.job.stages[-1]):
                return read_outcome(self.job, map(from_frame, collected(last)))
        except (Py4JError, PySparkException) as error:
            raise failure_of(error, self.job, self._stage_ids())  # noqa: B904 - it has its cause
        finally:
            for broadcast in self._broadcasts:
                broadcast.destroy()

    def _last_stage(self) -> RDD[bytes]:
        """The RDD of the last stage, on those of the stages before."""
        context, job, stages = self._context, self.job, self.job.stages
        shipped = ShippedJob(
            job.job_name,
            job.job_parameters,
            provide_modules(context, self._dependencies.python_executable),
            provide_files(self._session, self._dependencies),
        )
        frames: RDD[Any] = context.parallelize((), stages[0].parallelism)
        for stage, following in zip(stages, (*stages[1:], None), strict=True):
            vertices = tuple(self._shipped_vertex(number) for number in stage.vertices)
            tasks = StageTasks(shipped, stage, following, vertices)
            with stage_label(context, job, stage):
                name = stage_name(job, stage)
                output = written_raw(frames.mapPartitionsWithIndex(tasks)).setName(name)
                output = with_resources(output, self._slots(stage), name)
                if following is None:
                    return output
                frames = shuffled(output, following.parallelism, f"to {stage_name(job, following)}")
        raise AssertionError("a job has a last stage")

    def _shipped_vertex(self, number: int) -> ShippedVertex:
        vertex, data = self.job.vertices[number], self._shipped[number]
        if len(data) <= INLINE_BYTES:
            return ShippedVertex(vertex.name, vertex.first_task, vertex.parallelism, data)
        broadcast = self._context.broadcast(data)
        self._broadcasts.append(broadcast)
        return ShippedVertex(vertex.name, vertex.first_task, vertex.parallelism, broadcast)

    def _slots(self, stage: StageProgram) -> SlotResources | None:
        asked = (self._resources[number] for number in stage.vertices) if self._resources else ()
        return largest(slots for slots in asked if slots is not None)

    def _description(self) -> str:
        return f"{self.job.job_name}: {'; '.join(stage_name(self.job, stage) for stage in self.job.stages)}"

    def _stage_ids(self) -> list[int]:
        """Spark's ids of the stages in order; empty where Spark no longer answers."""
        from py4j.protocol import Py4JError  # noqa: PLC0415

        try:
            tracker = self._context.statusTracker()
            jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(self.group)]
            return sorted(int(stage) for found in jobs if found for stage in found.stageIds)
        except Py4JError:
            return []


@contextmanager
def _python_executable(context: SparkContext, executable: str | None) -> Iterator[None]:
    """Within the block RDDs are made for an interpreter; the context keeps its own."""
    before = context.pythonExec
    context.pythonExec = executable or before
    try:
        yield
    finally:
        context.pythonExec = before
