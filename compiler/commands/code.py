"""`opchain code`: the generated source of a program, or of the vertex that `--vertex` selects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opchain.compiler.codegen.rules import RULE_NAMES
from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.output import answer, examples, note
from opchain.compiler.command_line.program_command import (
    ProgramCommand,
    Request,
    captured_program,
    takes_program,
)
from opchain.compiler.graph.plan import Plan, required
from opchain.compiler.passes.generate_code import generate_code, generated_code_compiles
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.layout import listed
from opchain.compiler.plan.text import generated_modules, generated_text

if TYPE_CHECKING:
    from opchain.runtime.program.vertex_program import VertexProgram


def chosen_vertex(plan: Plan, chosen: str) -> int:
    """The number of a vertex, from 1 as in `opchain plan`; the first one if several match.

    Args:
        plan: Compiled to its end.
        chosen: Its number, name or id, or the name, uid or id of one of its operators.

    Raises:
        CommandError: No vertex matches.
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
    """The vertices in the order of `opchain plan`. In a JobProgram they are ordered by stage."""
    programs = {program.vertex_id: program for program in required(plan.job_program).vertices}
    return [programs[vertex.id] for vertex in required(plan.job_graph).vertices]


def _names(vertex: VertexProgram) -> set[str]:
    names = {vertex.name, vertex.vertex_id}
    for operator in vertex.operators:
        names |= {operator.name, operator.uid or operator.name, operator.operator_id}
    return names


@click.command(
    cls=ProgramCommand,
    short_help="Prints the source that runs FILE, one function per vertex.",
    epilog=examples("opchain code job.py", "opchain code job.py --vertex totals"),
)
@click.argument("file")
@takes_program
@click.option(
    "--vertex", metavar="V", help="Only one vertex: its number, its name, or an operator's uid."
)
@click.option(
    "--until",
    metavar="RULE",
    help=f"Apply the rewrite rules up to this one: {', '.join(RULE_NAMES)}.",
)
@click.option(
    "--without",
    metavar="RULE",
    multiple=True,
    help="A rewrite rule to omit, as opchain.codegen.without does; may be repeated.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write vertex_1.py, vertex_2.py, ... to FOLDER instead of printing.",
)
def code(
    file: str,
    request: Request,
    vertex: str | None,
    until: str | None,
    without: tuple[str, ...],
    output: Path | None,
) -> None:
    """Prints the Python source that runs FILE, one function per vertex.

    FILE and ARGUMENTS are as for 'opchain plan'.
    """
    with captured_program(file, request) as program:
        plan = generate_code(compile_program(program, "programs"), until, without)
        generated_code_compiles(plan)
        if output is not None:
            _write(generated_modules(plan), output)
        else:
            number = None if vertex is None else chosen_vertex(plan, vertex)
            answer(generated_text(plan, number))


def _write(modules: list[str], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, module in enumerate(modules, start=1):
            path = folder / f"vertex_{number}.py"
            path.write_text(module, encoding="utf-8", newline="\n")
            note(f"{path} written")
    except OSError as error:
        raise CommandError(f"cannot write into {folder}: {error.strerror}") from None


COMMANDS = (code,)
