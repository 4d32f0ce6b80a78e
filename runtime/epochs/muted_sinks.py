"""Sinks that write nothing: an epoch that is run again must not write again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.print_sink import PrintSinkFunction
from opchain.runtime.functions.sink import SinkWriter
from opchain.runtime.functions.source_sink_functions import SinkFunction
from opchain.runtime.program.operator_specs import LegacySinkSpec
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram


class MutedWriter(SinkWriter[Any]):
    """Takes records, and does nothing."""

    def write(self, value: Any, timestamp: int | None) -> None:
        """Does nothing."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Likewise."""


class MutedSinkFunction(SinkFunction[Any]):
    """Stands for a SinkFunction of the user's."""

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Does nothing."""


def muted(job: JobProgram) -> JobProgram:
    """The job without the user's SinkFunctions; what is printed goes to the driver."""
    vertices = tuple(
        replace(vertex, operators=tuple(map(_muted_operator, vertex.operators)))
        for vertex in job.vertices
    )
    return replace(job, vertices=vertices)


def is_muted(operator: OperatorProgram) -> bool:
    """Whether `muted` takes the function of an operator, and with it its state."""
    # A subclass of the spec is another kind of sink, with a writer or without a function.
    return operator.spec.__class__ is LegacySinkSpec and not isinstance(
        operator.spec.function, PrintSinkFunction
    )


def muted_environment(job: JobProgram) -> TaskEnvironment:
    """What has the tasks of a job make writers that do nothing."""
    most = max(len(vertex.operators) for vertex in job.vertices)
    return TaskEnvironment(
        prints_on_driver=True, sink_writers=dict.fromkeys(range(most), lambda _: MutedWriter())
    )


def _muted_operator(operator: OperatorProgram) -> OperatorProgram:
    if not is_muted(operator):
        return operator
    return replace(operator, spec=LegacySinkSpec(MutedSinkFunction()))
