"""`opchain run`: runs a program as `python FILE` would."""

from __future__ import annotations

import runpy

import click
from opchain.compiler.commands.main_program import as_main_program, check_is_python
from opchain.compiler.commands.program_arguments import PASSES_ARGUMENTS_ON, takes_arguments
from opchain.compiler.commands.program_file import program_file


@click.command(context_settings=PASSES_ARGUMENTS_ON)
@click.argument("file")
@takes_arguments
def run(file: str, arguments: tuple[str, ...]) -> None:
    """Runs FILE with ARGUMENTS.

    The program gets every option that is not listed here, and all that stands behind --.
    """
    path = program_file(file).path
    check_is_python(path)
    with as_main_program(path, arguments):
        runpy.run_path(str(path), run_name="__main__")
