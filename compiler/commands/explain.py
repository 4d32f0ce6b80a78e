"""`opchain explain`: every edge of a program, chained or why not."""

from __future__ import annotations

import click

from opchain.compiler.commands.failures import clear_errors
from opchain.compiler.commands.output import answer, output_width
from opchain.compiler.commands.program_arguments import (
    PASSES_ARGUMENTS_ON,
    Request,
    captured_program,
    note_what_is_not_used,
    planned,
    takes_program,
)
from opchain.compiler.commands.program_command import ProgramCommand
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.edges import edges_text
from opchain.compiler.plan.generated_text import remarks_text


@click.command(
    cls=ProgramCommand,
    context_settings=PASSES_ARGUMENTS_ON,
    short_help="Says of every edge why it is chained, or why it is not.",
)
@click.argument("file")
@takes_program
@click.option(
    "--code",
    is_flag=True,
    help="Say of every operator what code generation did, and why it could not do more.",
)
def explain(file: str, request: Request, *, code: bool) -> None:
    """Says of every edge of FILE whether it is chained, else which rules it breaks and what would help.

    FILE and ARGUMENTS are those of 'opchain plan'.
    """
    if code:
        program, captured = captured_program(file, request)
        with clear_errors():
            answer(remarks_text(compile_program(program)))
        if captured.failure is not None:
            raise captured.failure
        return
    note_what_is_not_used(file, request)
    plan, failure = planned(file, request)
    answer(edges_text(plan, width=output_width()))
    if failure is not None:
        raise failure


COMMANDS = (explain,)
