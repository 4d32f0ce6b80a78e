"""What Spark's UI, log and progress bar show of a job: the names of its JobGraph."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from opchain.runtime.errors import one_line_name
from opchain.runtime.job.progress import stage_name, vertex_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

    from opchain.runtime.program.vertex_program import JobProgram, StageProgram

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
