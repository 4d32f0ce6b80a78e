"""A bounded job as one Spark job: a sequence of `mapPartitions`, with a shuffle between each two."""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opchain.runtime.errors import TaskFailedError
from opchain.runtime.job.dependencies import NO_DEPENDENCIES, JobDependencies
from opchain.runtime.job.orphans import (
    can_have_orphans,
    discard_orphans,
    discarded_on_failure,
)
from opchain.runtime.job.restarts import Restarts, RestartStrategy
from opchain.runtime.job.run import JobRun
from opchain.runtime.measurements.record_warnings import RecordWarnings
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.shipping.outcome import JobOutcome, commit, print_lines, read_outcome
from opchain.runtime.spark.dataframes import (
    DataFrameEnds,
    frames_for_driver,
    persisted,
    write_dataframes,
)
from opchain.runtime.spark.exchange import collected, from_frame
from opchain.runtime.spark.job_failure import explaining_a_lost_jvm, failure_of
from opchain.runtime.spark.remote_error import ErrorSeal
from opchain.runtime.spark.session import active_or_new_session
from opchain.runtime.spark.stage_progress import CountsAddress, SparkProgress
from opchain.runtime.spark.stage_rdds import SCHEDULER_POOL, StageRdds, job_group, stage_label
from opchain.runtime.spark.stage_tasks import ShippedJob, ShippedVertex, StageTasks
from opchain.runtime.spark.worker_path import provide_files, provide_imports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import RDD, SparkContext
    from pyspark.sql import SparkSession

    from opchain.runtime.program.vertex_program import JobProgram, SlotResources, StageProgram

_LOG = logging.getLogger("opchain.spark")


def spark_run(
    job: JobProgram,
    dependencies: JobDependencies = NO_DEPENDENCIES,
    resources: Sequence[SlotResources | None] = (),
    restarts: RestartStrategy | None = None,
) -> JobRun:
    """The run of a job on the active session, or a new one.

    Args:
        job: The job.
        dependencies: The files that it needs.
        resources: The resources of a slot of each vertex, or None; empty if no vertex has any.
        restarts: When a failed job is restarted: from its beginning, since nothing was committed.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
        SparkUnavailableError: Spark is missing or does not start.
    """
    shipped = ship_vertices(job)
    session = active_or_new_session()
    bounded = BoundedJob(session, job, shipped, dependencies, resources)
    counted = Restarts(restarts or RestartStrategy(), job.job_name)
    return JobRun(
        lambda: counted.run(bounded.run, bounded.cancelled),
        bounded.cancel,
        waits_for_others=True,
        name=job.job_name,
        progress=bounded.progress,
        restarts=counted,
    )


class BoundedJob:
    """One job on a session. `run` is one attempt. `cancel` may be called at any time, from any thread.

    The job runs in the scheduler pool of the thread that creates it.
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
        self.progress = SparkProgress(self._context, self.group, job)
        self._pool = self._context.getLocalProperty(SCHEDULER_POOL)
        self.cancelled = threading.Event()
        self._lineage = uuid.uuid4().hex
        self._restarts = 0
        self._seal = ErrorSeal()
        self._live: CountsAddress | None = None

    def run(self, restarts: int = 0) -> JobOutcome:
        """Runs all stages, then commits and prints.

        Args:
            restarts: The number of earlier attempts.

        Raises:
            Exception: The exception of a user's function, with notes that name the place. Its cause is the traceback of
                the executor.
            StreamError: The job failed for another reason.
        """
        self._restarts = restarts
        with (
            explaining_a_lost_jvm(self._context, self.job.job_name, ""),
            self.progress.live.listening(self._context) as self._live,
        ):
            self.progress.live.begin(self._live, 0)
            return self._run()

    def _run(self) -> JobOutcome:
        with discarded_on_failure(self.job, self._lineage):
            with job_group(self._context, self.group, self.job, self._pool):
                outcome = self._outcome()
            if self.cancelled.is_set():
                outcome.close()
                raise TaskFailedError("the job was cancelled before its results were committed")
            commit(self.job, outcome)
        RecordWarnings(self.job).look_at(outcome.metrics)
        self._discard_lost_attempts(outcome)
        print_lines(outcome)
        return outcome

    def cancel(self) -> None:
        """Ends the job's tasks, and starts no more. Other jobs of the session continue."""
        self.cancelled.set()
        self._context._jsc.sc().cancelJobGroupAndFutureJobs(self.group)  # noqa: SLF001 - not in Python yet

    def _discard_lost_attempts(self, outcome: JobOutcome) -> None:
        """Removes staged output of failed attempts, if there were any.

        A task that fails closes its sinks. It cannot do so if its process is lost, or if it had ended before another
        task of its slot failed. The search lists folders, so it runs only if an attempt was lost. Asking Spark for this
        takes 6 ms.
        """
        if not can_have_orphans(self.job):
            return
        has_lost_attempts = any(
            report.attempt > self._restarts for report in outcome.reports.values()
        )
        if not has_lost_attempts and not self.progress.has_repeated_stages():
            return
        try:
            discard_orphans(self.job, self._lineage)
        except Exception:  # noqa: BLE001 - the job has succeeded
            _LOG.warning(
                "job '%s' has succeeded, but staged output of failed task attempts could not be "
                "removed",
                self.job.job_name,
                exc_info=True,
            )

    def _outcome(self) -> JobOutcome:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
        from pyspark.errors import PySparkException  # noqa: PLC0415

        rdds = StageRdds(self._context, self.job, self._shipped, self._resources)
        ends = DataFrameEnds(self.job, self._session)
        try:
            last = self.last_stage(rdds, ends)
            with stage_label(self._context, self.job, self.job.stages[-1]):
                if ends.sinks:
                    return self._outcome_with_dataframes(last, ends)
                return read_outcome(self.job, map(from_frame, collected(last)))
        except (Py4JError, PySparkException) as error:
            raise failure_of(error, self.job, self._seal, self.progress.stage_ids())  # noqa: B904 - it has its cause
        finally:
            rdds.close()

    def _outcome_with_dataframes(self, last: RDD[bytes], ends: DataFrameEnds) -> JobOutcome:
        """Runs the stages once, and keeps their output until it is written."""
        with persisted(last) as frames:
            outcome = read_outcome(self.job, map(from_frame, frames_for_driver(frames)))
            try:
                if not self.cancelled.is_set():
                    write_dataframes(frames, ends.sinks, self._session)
            except BaseException:
                outcome.close()
                raise
        return outcome

    def last_stage(
        self, rdds: StageRdds, ends: DataFrameEnds, *, gives_rows: bool = False
    ) -> RDD[bytes]:
        """The RDD of the last stage, based on the RDDs of the other stages.

        Args:
            rdds: Creates the RDDs of the stages.
            ends: The DataFrames among the job's sources and sinks.
            gives_rows: Whether the RDD has the batches of the only sink instead of frames.
        """
        context, job = self._context, self.job
        shipped = ShippedJob(
            job.job_name,
            job.job_parameters,
            provide_imports(context, self._dependencies),
            provide_files(self._session, self._dependencies),
            self._seal,
            self.progress.finished,
            self._lineage,
            restarts=self._restarts,
            live=self._live,
            has_archives=bool(self._dependencies.archives),
        )

        def make_tasks(
            stage: StageProgram,
            following: StageProgram | None,
            vertices: tuple[ShippedVertex, ...],
        ) -> StageTasks:
            prepared = tuple(ends.with_schemas(vertex) for vertex in vertices)
            return StageTasks(shipped, stage, following, prepared, gives_rows=gives_rows)

        with python_executable(context, self._dependencies.python_executable):
            return rdds.last_stage(ends.first_input(), make_tasks)


@contextmanager
def python_executable(context: SparkContext, executable: str | None) -> Iterator[None]:
    """Within the block RDDs are created for this interpreter. Then the context has its own again."""
    before = context.pythonExec
    context.pythonExec = executable or before
    try:
        yield
    finally:
        context.pythonExec = before
