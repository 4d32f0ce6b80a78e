"""The RDDs of a job (`mapPartitions`, a shuffle, `mapPartitions`, ...), and the names of its stages in Spark's UI.

A stage requests the largest resources of its vertices, with a ResourceProfile. A slot is a Spark task. Its cores are the
CPUs of the task. Its memory is overhead of the executor, outside of the JVM, since tasks run in Python processes. Spark
supports this on YARN, Kubernetes and standalone clusters, with dynamic allocation. Elsewhere the job runs on the existing
executors, and logs a warning.
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
from opchain.runtime.spark.session import is_local, setting
from opchain.runtime.spark.stage_tasks import ShippedVertex, StageTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark import RDD, Broadcast, SparkContext
    from pyspark.resource import ResourceProfile

    MakeTasks = Callable[[StageProgram, StageProgram | None, tuple[ShippedVertex, ...]], StageTasks]

SCHEDULER_POOL = "spark.scheduler.pool"

_JOB_GROUP = (
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.interruptOnCancel",
    SCHEDULER_POOL,
)
_LONGEST = 1_000
"""The longest line that Spark shows, in characters."""

_CALL_SITE = ("callSite.short", "callSite.long")


@contextmanager
def job_group(
    context: SparkContext, group: str, job: JobProgram, pool: str | None
) -> Iterator[None]:
    """Within the block Spark jobs of this thread belong to a group and a pool. Spark shows the names of their stages."""
    names = "; ".join(stage_name(job, stage) for stage in job.stages)
    with _properties(context, _JOB_GROUP):
        context.setJobGroup(group, one_line_name(f"{job.job_name}: {names}", _LONGEST))
        context.setLocalProperty(SCHEDULER_POOL, cast("str", pool))  # None clears it
        yield


@contextmanager
def stage_label(context: SparkContext, job: JobProgram, stage: StageProgram) -> Iterator[None]:
    """Within the block RDDs and Spark's stages are named after the vertices of the stage.

    The details of a stage list its operators, with their lines in the program.
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
    """The RDD with the resources that the slots of its stage need.

    If Spark cannot request them, the logger `opchain.spark` warns and gives the reason.
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
        # Tried on an unused RDD: an RDD keeps a refused profile, which then breaks the scheduler.
        context.parallelize((), 1).withResources(profile)
    except (Py4JError, PySparkException) as error:
        java_error = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        reason = error if java_error is None else java_error.getMessage()
        return _unchanged(rdd, slots, stage, str(reason).splitlines()[0])
    return rdd.withResources(profile)


def resource_profile(context: SparkContext, slots: SlotResources) -> ResourceProfile:
    """The executors and tasks that such slots need.

    An executor has at least one slot, and as many as fit into the cores that the session gives to executors.
    """
    from pyspark.resource import (  # noqa: PLC0415 - pyspark may be missing
        ExecutorResourceRequests,
        ResourceProfileBuilder,
        TaskResourceRequests,
    )

    task_cpus = max(1, math.ceil(slots.cpu_cores))
    executor_cores = max(task_cpus, int(setting(context, "spark.executor.cores") or 1))
    slots_per_executor = executor_cores // task_cpus
    tasks = TaskResourceRequests().cpus(task_cpus)
    executors = (
        ExecutorResourceRequests()
        .cores(executor_cores)
        .memory(setting(context, "spark.executor.memory") or "1g")
        .memoryOverhead(f"{slots_per_executor * slots.memory_mebi_bytes}m")
    )
    for name, amount in slots.external:
        tasks.resource(name, amount)
        prefix = f"spark.executor.resource.{name}"
        executors.resource(
            name,
            math.ceil(amount * slots_per_executor),
            setting(context, f"{prefix}.discoveryScript"),
            setting(context, f"{prefix}.vendor"),
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
"""A smaller vertex is sent with each task of its stage, since a broadcast takes the driver 10 ms."""


class StageRdds:
    """Creates the RDDs of a job's stages, once for each run.

    Args:
        context: The context in which they run.
        job: The job.
        shipped: The pickle of each vertex.
        resources: The resources of a slot of each vertex, or None; empty if no vertex has any.
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
        """The RDD of the last stage, based on the RDDs of the other stages.

        Args:
            frames: The input of the first stage, with one partition for each slot.
            make_tasks: Creates the function of a stage, from the stage, the following stage and its vertices.
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
        """Drops the broadcasts."""
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
