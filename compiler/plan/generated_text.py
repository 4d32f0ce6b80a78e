"""The generated source of a job as text: one Python module a vertex."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opchain.compiler.graph.plan import made
from opchain.compiler.plan.layout import one_line
from opchain.compiler.plan.text import without_call_sites
from opchain.runtime.program.vertex_program import FIRST_OUTPUT

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


_INLINED_LINE = re.compile(r"(?:  # |, )[^\s,]+\.py:\d+$", re.MULTILINE)
"""The user's line at the end of a line of an inlined function."""


def generated_text(plan: Plan, vertex: int | None = None, *, call_sites: bool = True) -> str:
    """The modules one after the other, each under its vertex, or that of one vertex (from 1).

    `call_sites` is whether comments name lines of the program.

    Raises:
        ValueError: There is no such vertex.
    """
    modules = generated_modules(plan)
    if not call_sites:
        sites = {str(node.call_site) for node in made(plan.stream_graph).nodes()}
        modules = [_INLINED_LINE.sub("", without_call_sites(module, sites)) for module in modules]
    if vertex is None:
        return "\n\n".join(modules)
    if not 1 <= vertex <= len(modules):
        raise ValueError(
            f"there is no vertex {vertex}: the job has {len(modules)}, numbered from 1"
        )
    return modules[vertex - 1]


def generated_modules(plan: Plan) -> list[str]:
    """The module of each vertex, in the order of the job graph's vertices."""
    programs = {program.vertex_id: program for program in made(plan.job_program).vertices}
    modules = []
    for number, vertex in enumerate(made(plan.job_graph).vertices, start=1):
        source = programs[vertex.id].source
        title = f"# vertex {number}: {one_line(vertex.name, limit=400)}"
        if source is None:
            modules.append(
                f"{title}\n# runs operator by operator: code generation is switched off\n"
            )
        else:
            modules.append(f"{title}\n\n{source}")
    return modules


def remarks_text(plan: Plan) -> str:
    """What code generation did to each operator, and why it could not do more, vertex by vertex."""
    blocks = []
    for number, vertex in enumerate(made(plan.job_program).vertices, start=1):
        known = dict(vertex.remarks)
        lines = [f"vertex {number}: {one_line(vertex.name, limit=400)}"]
        for operator in vertex.operators:
            lines.append(f"  {operator.name} ({operator.call_site})")
            lines += [f"    {text}" for text in known.get(operator.index, ())]
        for index, output in enumerate(vertex.outputs):
            lines += [
                f"  -> {output.label}: {text}" for text in known.get(FIRST_OUTPUT - index, ())
            ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
