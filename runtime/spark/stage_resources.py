"""Slot sharing groups with resources, as ResourceProfiles of Spark's stages.

A stage asks for the most that any of its vertices asks for. A slot is a Spark task: its cores are the
task's CPUs, its memory is what the executor must have beside its JVM, since tasks live in Python processes.
Spark schedules by stage on YARN, Kubernetes and standalone clusters, with dynamic allocation; where it does
not, the job runs with the executors there are, and says so.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

from opchain.runtime.spark.session import is_local

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.resource import ResourceProfile

    from opchain.runtime.job.slot_resources import SlotResources

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
        "slot sharing group %s asks for %g cores and %d MB a slot; stage '%s' runs with the executors there "
        "are, because Spark cannot choose them by stage: %s",
        slots.group,
        slots.cpu_cores,
        slots.memory_mebi_bytes,
        stage,
        reason,
    )
    return rdd
