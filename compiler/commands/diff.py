"""`opchain diff`: what changed between two plans, for reviews and CI."""

from __future__ import annotations

import click

from opchain.compiler.commands.output import answer, output_width
from opchain.compiler.commands.program_arguments import (
    PASSES_ARGUMENTS_ON,
    Request,
    planned,
    takes_program,
)
from opchain.compiler.commands.program_command import ProgramCommand
from opchain.compiler.plan.diff import diff_plans, diff_text

DIFFERENT = 1
"""The exit code that says what `diff` is asked: not the same."""


@click.command(
    cls=ProgramCommand,
    context_settings=PASSES_ARGUMENTS_ON,
    short_help="Says what changed between two plans, and which state is lost.",
)
@click.argument("before")
@click.argument("after")
@takes_program
@click.option(
    "--fail-on",
    type=click.Choice(["any", "state"]),
    default="any",
    show_default=True,
    help="What makes the exit code 1: any difference, or only a problem with restoring state.",
)
@click.pass_context
def diff(
    context: click.Context,
    before: str,
    after: str,
    request: Request,
    fail_on: str,
) -> None:
    """Says what changed from BEFORE to AFTER, and which state a restore would no longer find.

    Both are programs or plans saved with 'opchain plan FILE --format json'; programs get ARGUMENTS.

    Exit codes: 0 the same, 1 different, 2 a program or file is in error.
    """
    plans, failures = zip(*(planned(file, request) for file in (before, after)), strict=True)
    found = diff_plans(*plans)
    answer(diff_text(found, width=output_width()))
    for failure in failures:
        if failure is not None:
            raise failure
    counts = found.state if fail_on == "state" else not found.is_empty
    context.exit(DIFFERENT if counts else 0)


COMMANDS = (diff,)
