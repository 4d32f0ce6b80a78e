"""From a program to a running job: compiles it whole, and hands it to Spark or to this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.graph.plan import made
from opchain.compiler.passes.pipeline import compile_program

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Program
    from opchain.runtime.job_run import JobRun


def submit(program: Program, *, wait: bool = False) -> JobRun:
    """Starts a job; with `wait`, runs it in this thread to its end.

    Where it runs is `execution.target`: "spark" (the active session, else a new one), or "local" for
    this process.
    """
    plan = compile_program(program)
    job = made(plan.job_program)
    if program.settings.target == "local":
        from opchain.runtime.local import local_run  # noqa: PLC0415 - only what is used is loaded

        run = local_run(job)
    else:
        from opchain.runtime.spark.bounded_job import spark_run  # noqa: PLC0415 - needs pyspark

        run = spark_run(job)
    return run.run_here() if wait else run.start()
