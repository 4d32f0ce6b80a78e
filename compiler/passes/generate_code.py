"""Gives each vertex its generated source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen.vertex import generate_vertex
from opchain.compiler.graph.plan import made
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


def generate_code(plan: Plan) -> Plan:
    """Fills `source`, `names` and `lines` of each vertex program, unless code generation is off."""
    settings = plan.program.settings
    if not settings.generate_code:
        return plan
    program = made(plan.job_program)
    vertices = []
    for vertex in program.vertices:
        code = generate_vertex(vertex, inline=settings.inline_functions)
        vertices.append(replace(vertex, source=code.source, names=code.names, lines=code.lines))
    return replace(plan, job_program=replace(program, vertices=tuple(vertices)))


def generated_code_compiles(plan: Plan) -> None:
    """Every generated module is Python, and every line of it is accounted for."""
    for vertex in made(plan.job_program).vertices:
        if vertex.source is None:
            continue
        try:
            compile(vertex.source, vertex.file_name, "exec")
        except SyntaxError as error:
            raise InternalError(
                f"the generated code of '{vertex.name}' is not Python: {error}\n{vertex.source}"
            ) from error
        if len(vertex.lines) != vertex.source.count("\n"):
            raise InternalError(f"the generated code of '{vertex.name}' has unaccounted lines")
