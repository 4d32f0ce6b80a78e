"""The command `opchain`.

Exit codes: 0 done; 1 `opchain diff` or `opchain replay` found differences, or `opchain lint` a mistake; 2 the command,
a file or the program is in error; 130 Ctrl-C. `opchain run` ends as the program itself does, with 1 where it raises;
`opchain submit` ends as spark-submit does.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from opchain.compiler import commands
from opchain.compiler.command_line.failures import CommandError
from opchain.compiler.command_line.output import examples
from opchain.compiler.commands.run import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_OUR_WORDS = (
    (r"^No such command '(\S+)'\.?", r"There is no command \1"),
    (r"(?<! )\.? Did you mean '(\S+)'\?$", r"; did you mean \1?"),
    (r"is not a valid integer( range)?$", "is not a whole number"),
    (r"is not in the range (\d+)<=x<=(\d+)$", r"is not in the range \1 to \2"),
    (r"is not in the range x>=(\d+)$", r"is less than \1"),
)
"""Parts of click's sentences, and what opchain says."""


@contextmanager
def uniform_usage_errors(command_path: Callable[[], str] = lambda: "opchain") -> Iterator[None]:
    """Prints click's usage errors in the form of opchain's own errors, with the nearest option or command.

    `command_path` gives the command, such as "opchain plan", for errors that do not name one.
    """
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        if error.ctx is None:  # the value of an option is missing
            path = command_path()
        else:  # the first word may be "python -m opchain"
            root = error.ctx.find_root().command_path
            path = "opchain" + error.ctx.command_path.removeprefix(root)
        message = error.format_message().rstrip(".")
        if isinstance(error, click.NoSuchOption):
            close = f"; did you mean {error.possibilities[0]}?" if error.possibilities else ""
            message = f"there is no option {error.option_name}{close}"
        for pattern, ours in _OUR_WORDS:
            message = re.sub(pattern, ours, message)
        message = message[:1].lower() + message[1:]
        end = "" if message.endswith("?") else ";"
        hint = "" if "'opchain " in message else f"{end} '{path} --help' shows what it takes"
        raise CommandError(f"{message}{hint}", path) from error


def _path_of(words: Sequence[str]) -> str:
    """The command that words of the command line name, with the names of its groups."""
    path = "opchain"
    command: click.Command = main
    for word in words:
        if not isinstance(command, click.Group) or word not in command.commands:
            break
        path, command = f"{path} {word}", command.commands[word]
    return path


class Commands(click.Group):
    """The commands. Ctrl-C ends with 130 in each of them: click's 1 would be the answer of `opchain diff`."""

    def make_context(self, *arguments: Any, **keywords: Any) -> click.Context:
        """Reads the options in front of the command."""
        with uniform_usage_errors():
            return super().make_context(*arguments, **keywords)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name; another name is refused with the nearest one."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            ctx.fail(f"there is no command {name}{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command that was chosen."""
        words = list(ctx.args)  # click removes them
        try:
            with uniform_usage_errors(lambda: _path_of([str(ctx.invoked_subcommand), *words])):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("opchain: interrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(
    name="opchain",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("opchain plan job.py", "opchain run --local job.py"),
)
@click.version_option(package_name="opchain", prog_name="opchain")
@click.option("--traceback", is_flag=True, help="Show where an error was raised.")
def main(traceback: bool) -> None:
    """Plans and runs Flink DataStream programs on Spark.

    plan, explain, diff, code and lint run a program only until it would execute a job. They need neither Spark nor
    Java.

    Exit codes: 0 done; 1 the program of 'run' failed, 'diff' or 'replay' found differences, or 'lint' found mistakes;
    2 the command, a file or the program is refused; 130 Ctrl-C. A program that calls sys.exit() sets the exit code of
    'run' and 'submit'.
    """


for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
    for command in getattr(importlib.import_module(module.name), "COMMANDS", ()):
        main.add_command(command)
