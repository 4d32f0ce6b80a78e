"""What the driver makes of what the tasks sent: collected records, commits, numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import InternalError
from opchain.runtime.metrics.job_metrics import (
    JobMetrics,
    merge_task_accumulators,
    merge_task_metrics,
)
from opchain.runtime.operators.specs import SinkCommitterSpec
from opchain.runtime.task.report import TaskReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.runtime.task.vertex_program import JobProgram


@dataclass(slots=True)
class JobOutcome:
    """A finished job.

    `collected` has the records of each collecting sink by its uid, subtask after subtask; `printed`
    the lines of print sinks that were sent here, with whether they go to stderr.
    """

    reports: dict[int, TaskReport] = field(default_factory=dict)
    collected: dict[str, list[Any]] = field(default_factory=dict)
    printed: list[tuple[str, bool]] = field(default_factory=list)
    committables: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    metrics: JobMetrics = field(default_factory=JobMetrics)
    accumulators: dict[str, Any] = field(default_factory=dict)


def read_outcome(job: JobProgram, items: Mapping[int, Sequence[Any]]) -> JobOutcome:
    """Sorts what the tasks sent, by task number.

    Raises:
        InternalError: A task is missing, or sent something unknown. Nothing partial is used.
    """
    outcome = JobOutcome()
    vertices = {
        vertex.first_task + subtask: number
        for number, vertex in enumerate(job.vertices)
        for subtask in range(vertex.parallelism)
    }
    for task in sorted(items):
        for item in items[task]:
            if isinstance(item, TaskReport):
                outcome.reports[task] = item
                continue
            kind, where, value = item
            if kind == "collect":
                outcome.collected.setdefault(where, []).extend(value)
            elif kind == "print":
                outcome.printed.append((value, where))
            elif kind == "commit":
                outcome.committables.setdefault((vertices[task], where), []).append(value)
            else:
                raise InternalError(f"task {task} sent a {kind!r}, which the driver does not know")
    missing = sorted(vertices.keys() - outcome.reports.keys())
    if missing:
        raise InternalError(f"the job ended without a report of tasks {missing}")
    tasks = {task: report.metrics for task, report in outcome.reports.items()}
    outcome.metrics = merge_task_metrics(job, tasks)
    outcome.accumulators = merge_task_accumulators(job, tasks)
    return outcome


def commit(job: JobProgram, outcome: JobOutcome) -> None:
    """Commits what the sinks wrote; called once all tasks have succeeded."""
    for (vertex, index), committables in outcome.committables.items():
        spec = job.vertices[vertex].operators[index].spec
        assert isinstance(spec, SinkCommitterSpec)
        committer = spec.sink.create_committer()
        if committer is None:
            raise InternalError(f"{spec.sink!r} has committables and no committer")
        try:
            committer.commit(committables)
        finally:
            committer.close()
