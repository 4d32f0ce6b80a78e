"""`opchain explain`: every edge of a program, chained or why not."""

from __future__ import annotations

import click
from opchain.compiler.commands.output import answer, output_width
from opchain.compiler.commands.program_arguments import (
    PASSES_ARGUMENTS_ON,
    planned,
    takes_arguments,
    takes_job,
)
from opchain.compiler.plan.edges import edges_text


@click.command(context_settings=PASSES_ARGUMENTS_ON)
@click.argument("file")
@takes_arguments
@takes_job
def explain(file: str, arguments: tuple[str, ...], job: int | None) -> None:
    """Says of every edge of FILE whether it is chained, else which rules it breaks and what would help.

    FILE and ARGUMENTS are those of 'opchain plan'.
    """
    plan, failure = planned(file, arguments, job)
    answer(edges_text(plan, width=output_width()))
    if failure is not None:
        raise failure
