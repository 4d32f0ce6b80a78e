"""The vertex that `--vertex` means: by its number, its name, or an operator's name or uid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.commands.failures import CommandError
from opchain.compiler.graph.plan import made
from opchain.compiler.plan.layout import listed

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan
    from opchain.runtime.program.vertex_program import VertexProgram


def chosen_vertex(plan: Plan, chosen: str) -> int:
    """The number of the vertex, from 1 as `opchain plan` counts; of several that fit, the first.

    Args:
        plan: Compiled to its end.
        chosen: What the user has given.

    Raises:
        CommandError: There is none.
    """
    vertices = in_order_of_the_plan(plan)
    if chosen.isdecimal() and 1 <= int(chosen) <= len(vertices):
        return int(chosen)
    for number, vertex in enumerate(vertices, 1):
        if chosen in _names(vertex):
            return number
    known = listed(f"{number} '{vertex.name}'" for number, vertex in enumerate(vertices, 1))
    raise CommandError(f"the program has no vertex {chosen!r}; it has {known}")


def in_order_of_the_plan(plan: Plan) -> list[VertexProgram]:
    """The vertices as `opchain plan` counts them; a job's program has them stage by stage."""
    programs = {program.vertex_id: program for program in made(plan.job_program).vertices}
    return [programs[vertex.id] for vertex in made(plan.job_graph).vertices]


def _names(vertex: VertexProgram) -> set[str]:
    names = {vertex.name, vertex.vertex_id}
    for operator in vertex.operators:
        names |= {operator.name, operator.uid or operator.name, operator.operator_id}
    return names
