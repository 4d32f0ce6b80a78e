"""`opchain explain`: every edge of a program, chained or why not."""

from __future__ import annotations

import click

from opchain.compiler.commands.output import answer, output_width
from opchain.compiler.commands.program_arguments import (
    PASSES_ARGUMENTS_ON,
    Request,
    note_what_is_not_used,
    planned,
    takes_program,
)
from opchain.compiler.commands.program_command import ProgramCommand
from opchain.compiler.plan.edges import edges_text


@click.command(
    cls=ProgramCommand,
    context_settings=PASSES_ARGUMENTS_ON,
    short_help="Says of every edge why it is chained, or why it is not.",
)
@click.argument("file")
@takes_program
def explain(file: str, request: Request) -> None:
    """Says of every edge of FILE whether it is chained, else which rules it breaks and what would help.

    FILE and ARGUMENTS are those of 'opchain plan'.
    """
    note_what_is_not_used(file, request)
    plan, failure = planned(file, request)
    answer(edges_text(plan, width=output_width()))
    if failure is not None:
        raise failure
