"""What a job counted, by vertex and operator: what `JobExecutionResult.metrics` is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.metrics.merge_accumulators import SentAccumulator, merge_accumulators
from opchain.runtime.metrics.operator_metrics import OperatorMetrics
from opchain.runtime.metrics.plain_values import plain_values
from opchain.runtime.metrics.vertex_metrics import VertexMetrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.metrics.task_metrics import TaskMetrics
    from opchain.runtime.task.vertex_program import JobProgram, VertexProgram


@dataclass(frozen=True)
class JobMetrics:
    """The numbers of a finished job; `print(metrics)` shows them as a table.

    `rich.print(metrics)` shows the table as wide and as colourful as the terminal.
    """

    vertices: tuple[VertexMetrics, ...] = ()

    @property
    def operators(self) -> tuple[OperatorMetrics, ...]:
        """The operators of all vertices, in the order of the plan."""
        return tuple(operator for vertex in self.vertices for operator in vertex.operators)

    def operator(self, name: str) -> OperatorMetrics:
        """The operator of this name, uid or operator id.

        Raises:
            KeyError: There is none, or several have the name.
        """
        fields = ("name", "uid", "operator_id")
        found: OperatorMetrics = _only(name, "operator", self.operators, fields)
        return found

    def vertex(self, name: str) -> VertexMetrics:
        """The vertex of this name or id.

        Raises:
            KeyError: There is none, or several have the name.
        """
        found: VertexMetrics = _only(name, "vertex", self.vertices, ("name", "id"))
        return found

    def table(self) -> str:
        """The table as plain text, as wide as it needs to be."""
        from opchain.runtime.metrics.table import plain_table  # noqa: PLC0415 - loads rich

        return plain_table(self)

    def as_dict(self) -> dict[str, Any]:
        """All numbers by Flink's names, as what JSON knows: for files, dashboards and plans."""
        return {
            "vertices": [
                {
                    "id": vertex.id,
                    "name": vertex.name,
                    "parallelism": vertex.parallelism,
                    "skew": vertex.skew,
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

    def __rich__(self) -> Any:
        """What rich prints."""
        from opchain.runtime.metrics.table import rich_table  # noqa: PLC0415 - loads rich

        return rich_table(self)


def merge_task_metrics(job: JobProgram, tasks: Mapping[int, TaskMetrics]) -> JobMetrics:
    """The metrics of a job from those of its tasks, by task number; all of them are there."""
    return JobMetrics(tuple(_merge_vertex(vertex, tasks) for vertex in job.vertices))


def metrics_so_far(job: JobProgram, tasks: Mapping[int, TaskMetrics]) -> JobMetrics:
    """The metrics of a job that runs, from those of its tasks that are done; vertices without any are left out."""
    found = []
    for vertex in job.vertices:
        numbers = range(vertex.first_task, vertex.first_task + vertex.parallelism)
        done = [tasks[number] for number in numbers if number in tasks]
        if done:
            found.append(_merge(vertex, tuple(done)))
    return JobMetrics(tuple(found))


def merge_task_accumulators(job: JobProgram, tasks: Mapping[int, TaskMetrics]) -> dict[str, Any]:
    """The accumulators of a job by name."""
    return merge_accumulators(
        SentAccumulator(operator.name, name, pickled)
        for vertex in job.vertices
        for subtask in range(vertex.parallelism)
        for operator, counts in zip(
            vertex.all_operators, tasks[vertex.first_task + subtask].operators, strict=True
        )
        for name, pickled in counts.accumulators.items()
    )


def _merge_vertex(vertex: VertexProgram, tasks: Mapping[int, TaskMetrics]) -> VertexMetrics:
    return _merge(
        vertex, tuple(tasks[vertex.first_task + number] for number in range(vertex.parallelism))
    )


def _merge(vertex: VertexProgram, subtasks: tuple[TaskMetrics, ...]) -> VertexMetrics:
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
    return VertexMetrics(vertex.vertex_id, vertex.name, subtasks, operators)


def _only(wanted: str, what: str, candidates: tuple[Any, ...], fields: tuple[str, ...]) -> Any:
    found = [item for item in candidates if wanted in (getattr(item, field) for field in fields)]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(getattr(item, fields[-1]) for item in found)
        raise KeyError(f"{len(found)} {what}s have the name {wanted!r}; ask by id: {places}")
    known = ", ".join(repr(item.name) for item in candidates) or "none"
    raise KeyError(f"no {what} has the name {wanted!r}; there are: {known}")
