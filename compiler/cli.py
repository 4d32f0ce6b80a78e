"""The command `opchain`.

Exit codes: 0 done; 1 `opchain diff` or `opchain replay` found differences, or `opchain lint` a mistake; 2 the command, a
file or the program is in error; 130 Ctrl-C. `opchain run` ends as the program itself does, with 1 where it raises; `opchain submit` ends as
spark-submit does.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import click

from opchain.compiler import commands
from opchain.compiler.commands.run import INTERRUPTED


class Commands(click.Group):
    """The commands. Ctrl-C ends with 130 in each of them: click's 1 would be the answer of `opchain diff`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command that was chosen."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("opchain: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(name="opchain", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="opchain", prog_name="opchain")
@click.option("--traceback", is_flag=True, help="Show where an error was raised.")
def main(traceback: bool) -> None:
    """Flink DataStream programs on Spark: their plans, and running them.

    plan, explain, diff and code run a program only until it would execute a job; they need neither
    Spark nor Java.

    Exit codes: 0 done; 1 the program of 'run' failed, 'diff' or 'replay' found differences, or 'lint' a mistake; 2 the command, a file or
    the program is refused; 130 Ctrl-C. 'run' and 'submit' otherwise end as the program does.
    """


for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
    for command in getattr(importlib.import_module(module.name), "COMMANDS", ()):
        main.add_command(command)
