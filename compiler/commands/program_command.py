"""A command that takes a program: where its own options end, and what the program's path may look like.

opchain's options end at `--`, or at the first argument behind FILE that is not opchain's: everything from there on is
the program's. `-m package.module` stands for the module's file.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib.machinery import PathFinder
from pathlib import Path

import click

from opchain.compiler.commands.failures import CommandError
from opchain.compiler.commands.output import note

_NEARLY_THE_SAME = 0.82
"""How like an option's name another must be to be taken for a slip; from 0 to 1."""


class ProgramCommand(click.Command):
    """A command with FILE and ARGUMENTS."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the command line, and mentions options that may not be the program's."""
        own, programs = self._divided(ctx, args)
        rest = super().parse_args(ctx, [*own, "--", *programs] if programs is not None else own)
        if "--" not in args:
            for argument in ctx.params.get("arguments") or ():
                _mention(argument.partition("=")[0], ctx)
        return rest

    def _divided(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[str] | None]:
        """Opchain's part of the command line, with `-m MODULE` as a path, and the program's part."""
        files = sum(parameter.required for parameter in self._arguments(ctx))
        takes_more = any(parameter.nargs == -1 for parameter in self._arguments(ctx))
        own: list[str] = []
        words = list(args)
        while words:
            word = words.pop(0)
            if word == "--":
                return own, words
            if word == "-m" and files > 0 and words:
                own.append(str(module_file(words.pop(0))))
                files -= 1
            elif not word.startswith("-") or word == "-":
                if files == 0 and takes_more:
                    return own, [word, *words]
                own.append(word)
                files -= 1
            else:
                option = self._option(ctx, word)
                if option is None and files <= 0 and takes_more:
                    return own, [word, *words]
                own.append(word)
                if option is not None and _takes_next(option, word) and words:
                    own.append(words.pop(0))
        return own, None

    def _arguments(self, ctx: click.Context) -> list[click.Argument]:
        return [each for each in self.get_params(ctx) if isinstance(each, click.Argument)]

    def _option(self, ctx: click.Context, word: str) -> click.Option | None:
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and name in (
                *parameter.opts,
                *parameter.secondary_opts,
            ):
                return parameter
        return None


def _takes_next(option: click.Option, word: str) -> bool:
    if option.is_flag or option.count:
        return False
    return "=" not in word if word.startswith("--") else len(word) == 2  # noqa: PLR2004 - as in -D


def module_file(name: str) -> Path:
    """The file of a module, found from the working directory as `python -m` finds it; nothing is imported.

    Raises:
        CommandError: There is no such module.
    """
    places = [str(Path.cwd()), *sys.path]
    parts = name.split(".")
    for number, part in enumerate(parts):
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            break
        is_last = number == len(parts) - 1
        found = list(spec.submodule_search_locations or ())
        if is_last and found:  # a package runs as its __main__
            spec = PathFinder.find_spec("__main__", found)
        if is_last and spec is not None and spec.origin is not None:
            return Path(spec.origin)
        places = found
    raise CommandError(f"there is no module {name}, looked for from the folder {Path.cwd()}")


def option_like(name: str, context: click.Context) -> str | None:
    """The option of a command, or of `opchain`, whose name is nearly this."""
    names = [*_options(context), *_options(context.find_root())]
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    return close[0] if close else None


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
    if name in _options(context):
        note(
            f"{name} goes to the program, since it stands behind the program's own arguments; put "
            f"opchain's {name} in front of FILE, or -- in front of the program's options to say that they are its own"
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
