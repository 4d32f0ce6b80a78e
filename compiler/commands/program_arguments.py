"""FILE and its arguments on the command line, the same way in every command that takes a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from opchain.compiler.commands.failures import CommandError, clear_errors
from opchain.compiler.commands.output import note
from opchain.compiler.commands.program_file import capture_program, program_file
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.model import from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.compiler.commands.program_file import Captured
    from opchain.compiler.graph.plan import Program
    from opchain.compiler.plan.model import JobPlan

C = TypeVar("C", bound="Callable[..., Any]")

PASSES_ARGUMENTS_ON = {"ignore_unknown_options": True}
"""For `context_settings`: an option that opchain does not know is the program's."""


def takes_arguments(command: C) -> C:
    """Adds ARGUMENTS, which the program gets as its own."""
    return click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(command)


def takes_job(command: C) -> C:
    """Adds `--job`."""
    return click.option(
        "--job",
        type=click.IntRange(min=1),
        metavar="N",
        help="Which job of a program that executes several; the first one by default.",
    )(command)


def captured_program(
    file: str, arguments: Sequence[str], job: int | None
) -> tuple[Program, Captured]:
    """Runs FILE with its jobs captured, and chooses one; notes go to standard error."""
    with clear_errors():
        captured = capture_program(program_file(file), arguments)
        program = captured.job(job).program
    for text in (captured.choice(job), *captured.notes):
        if text is not None:
            note(text)
    return program, captured


def is_saved_plan(file: str) -> bool:
    """Whether FILE is taken for a plan that was saved, not for a program."""
    return file.lower().endswith(".json")


def read_saved_plan(file: str) -> JobPlan:
    """The plan in a file that `opchain plan FILE --format json` wrote."""
    path = program_file(file).path
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    with clear_errors():
        return from_json(text, str(path))


def planned(
    file: str, arguments: Sequence[str], job: int | None
) -> tuple[JobPlan, CommandError | None]:
    """The plan of FILE, a program or a saved plan; and how the program failed behind its jobs."""
    if is_saved_plan(file):
        return read_saved_plan(file), None
    program, captured = captured_program(file, arguments, job)
    with clear_errors():
        return job_plan(compile_program(program, "job-graph")), captured.failure
