"""A command that hands options on to a program, and mentions one that was probably meant for itself."""

from __future__ import annotations

from difflib import get_close_matches

import click

from opchain.compiler.commands.output import note

_NEARLY_THE_SAME = 0.82
"""How like an option's name another must be to be taken for a slip; from 0 to 1."""


class ProgramCommand(click.Command):
    """A command with FILE and ARGUMENTS; arguments after `--` belong to the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the command line, and mentions options that may not be the program's."""
        in_doubt = set(args[: args.index("--")] if "--" in args else args)
        rest = super().parse_args(ctx, args)
        for argument in ctx.params.get("arguments") or ():
            if argument in in_doubt:
                _mention(argument.partition("=")[0], ctx)
        return rest


def _mention(name: str, context: click.Context) -> None:
    if not name.startswith("--"):
        return
    above = context.find_root()
    if above is not context and name in _options(above):
        note(
            f"{name} goes to the program; opchain's own stands in front of the command: opchain {name} "
            f"{context.info_name} ...; put -- in front of the program's options to say that they are its own"
        )
        return
    close = get_close_matches(name, _options(context), n=1, cutoff=_NEARLY_THE_SAME)
    if close:
        note(
            f"{name} goes to the program; opchain's own option is {close[0]}; put -- in front of the "
            "program's options to say that they are its own"
        )


def _options(context: click.Context) -> list[str]:
    parameters = context.command.get_params(context)
    return [name for parameter in parameters for name in parameter.opts if name.startswith("--")]
