"""A job's stages as one line of RDDs (`mapPartitions`, a shuffle, `mapPartitions`, ...), and their names in Spark's UI.

A stage asks for the most that any of its vertices asks for, with a ResourceProfile. A slot is a Spark task: its cores are
the task's CPUs, its memory is what the executor must have beside its JVM, since tasks live in Python processes.
Spark schedules by stage on YARN, Kubernetes and standalone clusters, with dynamic allocation. Elsewhere
the job runs with the executors there are, and logs so.
"""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from opchain.runtime.errors import one_line_name
from opchain.runtime.job.progress import stage_name, vertex_name
from opchain.runtime.program.vertex_program import JobProgram, SlotResources, StageProgram, largest
from opchain.runtime.spark.exchange import shuffled, written_raw
from opchain.runtime.spark.session import is_local
from opchain.runtime.spark.stage_tasks import ShippedVertex, StageTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark import RDD, Broadcast, SparkContext
    from pyspark.resource import ResourceProfile

    MakeTasks = Callable[[StageProgram, StageProgram | None, tuple[ShippedVertex, ...]], StageTasks]

__all__ = ["SCHEDULER_POOL", "job_group", "stage_label", "stage_name"]

SCHEDULER_POOL = "spark.scheduler.pool"

_JOB_GROUP = (
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.interruptOnCancel",
    SCHEDULER_POOL,
)
_LONGEST = 1_000
"""Of a line that Spark shows, in characters."""

_CALL_SITE = ("callSite.short", "callSite.long")


@contextmanager
def job_group(
    context: SparkContext, group: str, description: str, pool: str | None
) -> Iterator[None]:
    """Within the block this thread's jobs belong to a group and a pool; afterwards to those of before."""
    with _properties(context, _JOB_GROUP):
        context.setJobGroup(group, one_line_name(description, _LONGEST))
        context.setLocalProperty(SCHEDULER_POOL, cast("str", pool))  # None clears it
        yield


@contextmanager
def stage_label(context: SparkContext, job: JobProgram, stage: StageProgram) -> Iterator[None]:
    """Within the block RDDs, and the stages that they end, are named after the stage's vertices.

    The details of a stage list its operators, with the lines of the program that drew them.
    """
    with _properties(context, _CALL_SITE):
        context.setLocalProperty("callSite.short", stage_name(job, stage))
        context.setLocalProperty("callSite.long", _details(job, stage))
        yield


def _details(job: JobProgram, stage: StageProgram) -> str:
    lines = []
    for number in stage.vertices:
        vertex = job.vertices[number]
        lines.append(vertex_name(vertex))
        lines += [f"  {operator.name} ({operator.call_site})" for operator in vertex.operators]
        lines += [f"  -> {output.label}" for output in vertex.outputs]
    return "\n".join(one_line_name(line, _LONGEST) for line in lines)


@contextmanager
def _properties(context: SparkContext, names: tuple[str, ...]) -> Iterator[None]:
    before: dict[str, Any] = {name: context.getLocalProperty(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


_LOG = logging.getLogger("opchain.spark")


def with_resources(rdd: RDD[Any], slots: SlotResources | None, stage: str) -> RDD[Any]:
    """Lets the stage that ends in `rdd` ask for what its slots need, where Spark can.

    Where it cannot, a warning of the logger `opchain.spark` says why.
    """
    if slots is None:
        return rdd
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    context = rdd.ctx
    if is_local(context):
        return _unchanged(rdd, slots, stage, f"the master is {context.master}")
    profile = resource_profile(context, slots)
    try:
        # Asked of an RDD that nobody runs: one that was refused a profile keeps it, and breaks the scheduler.
        context.parallelize((), 1).withResources(profile)
    except (Py4JError, PySparkException) as error:
        java_error = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        reason = error if java_error is None else java_error.getMessage()
        return _unchanged(rdd, slots, stage, str(reason).splitlines()[0])
    return rdd.withResources(profile)


def resource_profile(context: SparkContext, slots: SlotResources) -> ResourceProfile:
    """The executors and tasks that such slots need.

    An executor has as many slots as fit into the cores that the session gives executors, and at least one.
    """
    from pyspark.resource import (  # noqa: PLC0415 - pyspark may be missing
        ExecutorResourceRequests,
        ResourceProfileBuilder,
        TaskResourceRequests,
    )

    settings = context.getConf()
    task_cpus = max(1, math.ceil(slots.cpu_cores))
    executor_cores = max(task_cpus, int(settings.get("spark.executor.cores", "1") or 1))
    slots_per_executor = executor_cores // task_cpus
    tasks = TaskResourceRequests().cpus(task_cpus)
    executors = (
        ExecutorResourceRequests()
        .cores(executor_cores)
        .memory(settings.get("spark.executor.memory", "1g") or "1g")
        .memoryOverhead(f"{slots_per_executor * slots.memory_mebi_bytes}m")
    )
    for name, amount in slots.external:
        tasks.resource(name, amount)
        prefix = f"spark.executor.resource.{name}"
        executors.resource(
            name,
            math.ceil(amount * slots_per_executor),
            settings.get(f"{prefix}.discoveryScript", "") or "",
            settings.get(f"{prefix}.vendor", "") or "",
        )
    return ResourceProfileBuilder().require(executors).require(tasks).build


def _unchanged(rdd: RDD[Any], slots: SlotResources, stage: str, reason: str) -> RDD[Any]:
    _LOG.warning(
        "slot sharing group %s asks for %g cores and %d MB a slot; stage '%s' runs on the "
        "existing executors, because Spark cannot choose executors per stage: %s",
        slots.group,
        slots.cpu_cores,
        slots.memory_mebi_bytes,
        stage,
        reason,
    )
    return rdd


INLINE_BYTES = 64 * 1024
"""A shorter vertex rides along with each task of its stage: a broadcast takes the driver 10 ms."""


class StageRdds:
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
