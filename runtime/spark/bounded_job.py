"""A bounded job as one Spark job: a line of `mapPartitions` with a shuffle between each two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.job_outcome import JobOutcome, commit, read_outcome
from opchain.runtime.job_run import JobRun
from opchain.runtime.shipping import ship, unship
from opchain.runtime.spark.exchange import address, receive, shuffle
from opchain.runtime.spark.session import active_or_new_session
from opchain.runtime.task.buffer import Buffer
from opchain.runtime.task.buffer_store import BufferStore
from opchain.runtime.task.report import read_driver_buffers
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.task.vertex_program import JobProgram, StageProgram
    from pyspark import Broadcast, SparkContext


def spark_run(job: JobProgram) -> JobRun:
    """The run of a job on the active session, or a new one."""
    session = active_or_new_session()
    context = session.sparkContext

    def run() -> JobOutcome:
        buffers = run_stages(context, job)
        outcome = read_outcome(job, read_driver_buffers(buffers))
        commit(job, outcome)
        return outcome

    return JobRun(run, context.cancelAllJobs)


def run_stages(context: SparkContext, job: JobProgram) -> list[Buffer]:
    """Runs the stages as one Spark job, and gives the buffers for the driver."""
    shipped = context.broadcast(ship(job))
    stages = job.stages
    rdd: Any = context.parallelize(range(stages[0].parallelism), stages[0].parallelism)
    for stage in stages:
        following = stages[stage.index + 1] if stage.index + 1 < len(stages) else None
        rdd = rdd.mapPartitionsWithIndex(StageRunner(shipped, stage, following))
        if following is not None:
            rdd = shuffle(rdd, following)
    return [Buffer(*fields) for fields in rdd.collect()]


class StageRunner:
    """What Spark runs on each partition of a stage: one task, and the buffers that pass by."""

    def __init__(
        self, shipped: Broadcast[bytes], stage: StageProgram, following: StageProgram | None
    ) -> None:
        self.shipped = shipped
        self.stage = stage
        self.following = following

    def __call__(self, partition: int, pairs: Iterable[Any]) -> Iterator[Any]:
        """Runs the task of a partition."""
        out = self._buffers(partition, pairs)
        return out if self.following is None else address(out, self.following)

    def _buffers(self, partition: int, pairs: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext  # noqa: PLC0415 - there is one on executors only

        task = self.stage.first_task + partition
        job: JobProgram = unship(self.shipped.value)
        attempt = TaskContext.get()
        environment = TaskEnvironment(
            attempt=attempt.attemptNumber() if attempt else 0,
            attempt_id=str(attempt.taskAttemptId()) if attempt else "local",
        )
        with BufferStore() as store:
            if self.stage.index > 0:
                yield from receive(pairs, task, store)
            yield from StreamTask(job, task, iter(store), environment).run()
