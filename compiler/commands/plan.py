"""`opchain plan`: a program at any stage of its way, in any format."""

from __future__ import annotations

import click
from opchain.compiler.commands.failures import CommandError, clear_errors
from opchain.compiler.commands.output import answer, output_width
from opchain.compiler.commands.program_arguments import (
    PASSES_ARGUMENTS_ON,
    Request,
    captured_program,
    is_saved_plan,
    read_saved_plan,
    takes_program,
)
from opchain.compiler.plan.explain import FORMATS, STAGES, Form, explain, print_saved


@click.command(context_settings=PASSES_ARGUMENTS_ON)
@click.argument("file")
@takes_program
@click.option(
    "--stage",
    type=click.Choice(list(STAGES)),
    default="job-graph",
    show_default=True,
    help="How far the program is compiled.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="flink-json is what Flink's plan visualizer reads.",
)
@click.option(
    "--call-sites/--no-call-sites",
    default=True,
    help="Whether the text names lines of the program.",
)
def plan(file: str, request: Request, stage: str, form: str, call_sites: bool) -> None:
    """Prints the plan of FILE: a program, FILE:build, or a plan saved as JSON.

    The program is run with execute() intercepted: no job runs, and what it prints goes to standard
    error. It gets ARGUMENTS and every option that is not listed here; use -- in front of its own
    options of the same name.
    """
    text = Form(width=output_width(), call_sites=call_sites)
    if is_saved_plan(file):
        try:
            answer(print_saved(read_saved_plan(file), stage, form, text))
        except ValueError as error:
            raise CommandError(f"{file} is a saved plan: {error}") from None
        return
    _check(stage, form)
    program, captured = captured_program(file, request)
    with clear_errors():
        answer(explain(program, stage, form, text=text))
    if captured.failure is not None:
        raise captured.failure


def _check(stage: str, form: str) -> None:
    """Before the program is run: what it does may take long."""
    formats = STAGES[stage].printers
    if form not in formats:
        raise CommandError(f"stage {stage} has no format {form}; it has {', '.join(formats)}")
