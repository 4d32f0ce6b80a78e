"""What an assertion takes: an environment, a program or a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from opchain.compiler.graph.plan import Program
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.model import JobPlan

if TYPE_CHECKING:
    from opchain.compiler.dsl.interception import Environment

    Planned: TypeAlias = Environment | Program | JobPlan


def program_of(program: Environment | Program) -> Program:
    """What is drawn so far."""
    return program if isinstance(program, Program) else program.program()


def plan_of(program: Planned) -> JobPlan:
    """The plan to assert on: `plan_of(env).vertices`, `.operators`, `.edges`.

    Raises:
        GraphError: The program is refused.
    """
    if isinstance(program, JobPlan):
        return program
    return job_plan(compile_program(program_of(program), "job-graph"))
