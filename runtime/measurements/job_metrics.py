"""The metrics of a job by vertex and operator (`JobExecutionResult.metrics`), and the sums over the epochs of an unbounded job."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.runtime.measurements.hot_keys import HotKeys, merged_hot_keys
from opchain.runtime.measurements.vertex_metrics import OperatorMetrics, VertexMetrics
from opchain.runtime.metrics.accumulators import SentAccumulator, merge_accumulators
from opchain.runtime.metrics.metric_group import NUM_LATE_RECORDS_DROPPED
from opchain.runtime.metrics.metric_types import plain_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.measurements.task_metrics import OperatorCounts, TaskMetrics
    from opchain.runtime.program.vertex_program import JobProgram, VertexProgram


@dataclass(frozen=True)
class JobMetrics:
    """The metrics of a finished job. `print(metrics)` shows them as a table.

    `rich.print(metrics)` shows the table in the width and colours of the terminal.
    """

    vertices: tuple[VertexMetrics, ...] = ()

    @property
    def operators(self) -> tuple[OperatorMetrics, ...]:
        """The operators of all vertices, in the order of the plan."""
        return tuple(operator for vertex in self.vertices for operator in vertex.operators)

    def operator(self, name: str) -> OperatorMetrics:
        """The operator with this name, uid or operator id.

        Raises:
            KeyError: No operator has it, or several have the name.
        """
        fields = ("name", "uid", "operator_id")
        found: OperatorMetrics = _only(name, "operator", self.operators, fields)
        return found

    def vertex(self, name: str) -> VertexMetrics:
        """The vertex with this name or id.

        Raises:
            KeyError: No vertex has it, or several have the name.
        """
        found: VertexMetrics = _only(name, "vertex", self.vertices, ("name", "id"))
        return found

    def table(self) -> str:
        """The table as plain text, without a limit of its width."""
        from opchain.runtime.measurements.table import plain_table  # noqa: PLC0415 - loads rich

        return plain_table(self)

    def as_dict(self) -> dict[str, Any]:
        """All metrics by Flink's names, as JSON values: for files, dashboards and plans."""
        return {
            "vertices": [
                {
                    "id": vertex.id,
                    "name": vertex.name,
                    "parallelism": vertex.parallelism,
                    "skew": vertex.skew,
                    "hot_keys": None if vertex.hot_keys is None else asdict(vertex.hot_keys),
                    "metrics": plain_values(vertex.values()),
                    "operators": [
                        {
                            "id": operator.operator_id,
                            "name": operator.name,
                            "call_site": operator.call_site,
                            "metrics": plain_values(operator.values()),
                        }
                        for operator in vertex.operators
                    ],
                }
                for vertex in self.vertices
            ]
        }

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<JobMetrics: {len(self.vertices)} vertices, {len(self.operators)} operators>"

    def _repr_html_(self) -> str:
        """The metrics as HTML, for notebooks."""
        from opchain.runtime.measurements.table import html_table  # noqa: PLC0415

        return html_table(self)

    def __rich__(self) -> Any:
        """The metrics as a table, for rich."""
        from opchain.runtime.measurements.table import rich_table  # noqa: PLC0415 - loads rich

        return rich_table(self)


def merge_task_metrics(job: JobProgram, tasks: Mapping[int, TaskMetrics]) -> JobMetrics:
    """The metrics of a job, from those of all its tasks by task number."""
    hot_keys = _hot_keys(tasks)
    return JobMetrics(
        tuple(
            _merge(
                vertex,
                tuple(tasks[task] for task in vertex.tasks),
                hot_keys,
            )
            for vertex in job.vertices
        )
    )


def metrics_so_far(job: JobProgram, tasks: Mapping[int, TaskMetrics]) -> JobMetrics:
    """The metrics of a running job, from those of its finished tasks. Vertices without any are omitted."""
    found = []
    hot_keys = _hot_keys(tasks)
    for vertex in job.vertices:
        done = [tasks[task] for task in vertex.tasks if task in tasks]
        if done:
            found.append(_merge(vertex, tuple(done), hot_keys))
    return JobMetrics(tuple(found))


def merge_task_accumulators(job: JobProgram, tasks: Mapping[int, TaskMetrics]) -> dict[str, Any]:
    """The accumulators of a job by name."""
    return merge_accumulators(
        SentAccumulator(operator.name, name, pickled)
        for vertex in job.vertices
        for task in vertex.tasks
        for operator, counts in zip(vertex.all_operators, tasks[task].operators, strict=True)
        for name, pickled in counts.accumulators.items()
    )


def _hot_keys(tasks: Mapping[int, TaskMetrics]) -> dict[int, HotKeys]:
    """The hottest keys of all exchanges by key, by the first task of the receiver."""
    found = merged_hot_keys(each for task in tasks.values() for each in task.hot_keys)
    return {each.target: each for each in found}


def _merge(
    vertex: VertexProgram, subtasks: tuple[TaskMetrics, ...], hot_keys: Mapping[int, HotKeys]
) -> VertexMetrics:
    seconds = tuple(task.seconds for task in subtasks)
    operators = tuple(
        OperatorMetrics(
            operator.name,
            operator.operator_id,
            operator.uid,
            operator.call_site,
            tuple(task.operators[operator.index] for task in subtasks),
            seconds,
        )
        for operator in vertex.all_operators
    )
    hot = hot_keys.get(vertex.first_task)
    return VertexMetrics(vertex.vertex_id, vertex.name, subtasks, operators, hot)


def _only(wanted: str, what: str, candidates: tuple[Any, ...], fields: tuple[str, ...]) -> Any:
    found = [item for item in candidates if wanted in (getattr(item, field) for field in fields)]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(getattr(item, fields[-1]) for item in found)
        raise KeyError(f"{len(found)} {what}s have the name {wanted!r}; use the id: {places}")
    known = ", ".join(repr(item.name) for item in candidates) or "none"
    raise KeyError(f"no {what} has the name {wanted!r}; there are: {known}")


def added(before: TaskMetrics | None, epoch: TaskMetrics) -> TaskMetrics:
    """The metrics of a task, with those of one more epoch. Counts and times are added; all else is the latest."""
    if before is None:
        return epoch
    return replace(
        epoch,
        records_in=before.records_in + epoch.records_in,
        records_out=before.records_out + epoch.records_out,
        bytes_in=before.bytes_in + epoch.bytes_in,
        bytes_out=before.bytes_out + epoch.bytes_out,
        buffers_in=before.buffers_in + epoch.buffers_in,
        buffers_out=before.buffers_out + epoch.buffers_out,
        elapsed_ns=before.elapsed_ns + epoch.elapsed_ns,
        idle_ns=before.idle_ns + epoch.idle_ns,
        back_pressured_ns=before.back_pressured_ns + epoch.back_pressured_ns,
        mails=before.mails + epoch.mails,
        operators=tuple(map(_operator_added, before.operators, epoch.operators)),
        hot_keys=merged_hot_keys((*before.hot_keys, *epoch.hot_keys)),
    )


def _operator_added(before: OperatorCounts, epoch: OperatorCounts) -> OperatorCounts:
    return replace(
        epoch,
        records_in=before.records_in + epoch.records_in,
        records_out=before.records_out + epoch.records_out,
        # Running tasks send their counts without registered metrics, so those of the previous epoch are kept.
        registered=before.registered | epoch.registered | _late_records_added(before, epoch),
    )


def _late_records_added(before: OperatorCounts, epoch: OperatorCounts) -> dict[str, int]:
    name = NUM_LATE_RECORDS_DROPPED
    if name not in epoch.registered:
        return {}
    return {name: before.registered.get(name, 0) + epoch.registered[name]}


def over_span(metrics: TaskMetrics, span_ns: int) -> TaskMetrics:
    """The metrics of a task in an epoch, with the time between epochs counted as idle.

    Args:
        metrics: The metrics of the epoch, which only cover the time of its turns.
        span_ns: From the end of the previous epoch to the end of this one.
    """
    waited_ns = max(0, span_ns - metrics.elapsed_ns)
    return replace(
        metrics, elapsed_ns=metrics.elapsed_ns + waited_ns, idle_ns=metrics.idle_ns + waited_ns
    )


class RunTotals:
    """The totals of one run, by task number."""

    def __init__(self) -> None:
        self.tasks: dict[int, TaskMetrics] = {}

    def add(self, tasks: Mapping[int, TaskMetrics]) -> None:
        """Adds the metrics of an epoch."""
        self.tasks = {task: added(self.tasks.get(task), metrics) for task, metrics in tasks.items()}
