"""From a program to a DataFrame; and where DataFrames cannot be a job's sources and sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.plan import made
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.settings.dependencies_reader import job_dependencies
from opchain.runtime.connectors.fed_source import FedSource
from opchain.runtime.connectors.relayed_sink import RelayedSink
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Program
    from opchain.runtime.task.vertex_program import JobProgram


def dataframe(program: Program) -> Any:
    """The DataFrame of a bounded program whose one end is a DataFrameSink.

    Raises:
        UnsupportedFeatureError: It runs in this process.
    """
    from opchain.compiler.execution import slot_resources  # noqa: PLC0415 - it needs this module
    from opchain.runtime.spark.dataframe_output import stream_dataframe  # noqa: PLC0415 - as needed

    plan = compile_program(program)
    job = made(plan.job_program)
    if program.settings.target == "local":
        refuse_dataframes(job, "this one runs in this process (execution.target = local)")
    return stream_dataframe(job, job_dependencies(program), slot_resources(plan))


def refuse_dataframes(job: JobProgram, why: str) -> None:
    """Raises where a source or a sink of the job is Spark's.

    Raises:
        UnsupportedFeatureError: There is one; `why` says what it cannot run in.
    """
    for vertex in job.vertices:
        for operator in vertex.all_operators:
            end = getattr(operator.spec, "source", None) or getattr(operator.spec, "sink", None)
            if isinstance(end, (FedSource, RelayedSink)):
                raise UnsupportedFeatureError(
                    f"'{operator.name}' ({operator.call_site}) is {end!r}, which only a job on Spark can "
                    f"have, and {why}"
                )
