"""Commands that take a program: they divide the command line between opchain and the program.

opchain's options end at `--`, or at the first argument after FILE that is not an option of opchain. All that follows
belongs to the program. `-m package.module` stands for the module's file.
"""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.machinery import PathFinder
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from opchain.compiler.command_line.failures import CommandError, clear_errors
from opchain.compiler.command_line.output import note
from opchain.compiler.command_line.program_file import (
    SAVED_PLAN,
    capture_program,
    option_names,
    program_file,
)
from opchain.compiler.ineffective_settings import keys_without_counterpart
from opchain.compiler.interception import configuring
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import job_plan
from opchain.compiler.plan.model import JobPlan, from_json
from opchain.compiler.settings.settings_reader import (
    OPERATOR_PREFIX,
    is_known_key,
    known_keys,
    read_settings,
    unknown_key,
)
from opchain.runtime.configuration.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.compiler.graph.plan import Program

_STARTING = frozenset({"run", "submit"})
"""The commands that start jobs. Their jobs warn of settings without effect."""


class Request(NamedTuple):
    """The arguments and settings of a program, and which of its jobs is meant."""

    arguments: Sequence[str]
    settings: dict[str, str]
    job: int | None


def takes_program(command: Callable[..., None]) -> Callable[..., None]:
    """Adds ARGUMENTS, `--job`, `-D` and `--set`; the command gets them as `request`."""

    @takes_arguments
    @takes_settings
    @click.option(
        "--job",
        type=click.IntRange(min=1),
        metavar="N",
        help="The number of the job, if the program has several; the first one by default.",
    )
    @functools.wraps(command)
    def with_request(
        arguments: tuple[str, ...], settings: dict[str, str], job: int | None, **others: Any
    ) -> None:
        command(request=Request(arguments, settings, job), **others)

    return with_request


def takes_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """Adds ARGUMENTS, the arguments of the program."""
    return click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(command)


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `-D KEY=VALUE` and `--set OPERATOR.SETTING=VALUE`; the command gets all of them as `settings`."""

    @click.option(
        "-D",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_as_settings,
        shell_complete=_completed_keys,
        help="A setting for the environments of the program; may be repeated. 'opchain config ls' lists the keys.",
    )
    @click.option(
        "--set",
        "of_operators",
        multiple=True,
        metavar="OPERATOR.SETTING=VALUE",
        callback=_as_operator_settings,
        help="Replaces a setting of one operator, given by its uid or name: parallelism, max-parallelism, name, uid, "
        "chaining, buffer-timeout or slot-sharing-group; may be repeated.",
    )
    @functools.wraps(command)
    def with_settings(
        settings: dict[str, str], of_operators: dict[str, str], **others: Any
    ) -> None:
        command(settings={**settings, **of_operators}, **others)

    return with_settings


def capture_job(file: str, request: Request) -> tuple[Program, CommandError | None]:
    """Runs FILE with its jobs captured: the chosen job, and how FILE failed after its jobs. Notes go to standard error."""
    with configuring(request.settings), clear_errors():
        captured = capture_program(program_file(file), request.arguments)
        program = captured.job(request.job).program
    for text in (captured.choice(request.job), *captured.notes):
        if text is not None:
            note(text)
    return program, captured.failure


@contextmanager
def captured_program(file: str, request: Request) -> Iterator[Program]:
    """Runs FILE with its jobs captured, and gives the block the chosen job.

    If opchain refuses something in the block, this is a CommandError. If FILE failed after its jobs, the end of the
    block raises that error: the command has shown its result by then.
    """
    program, failure = capture_job(file, request)
    with clear_errors():
        yield program
    if failure is not None:
        raise failure


def is_saved_plan(file: str) -> bool:
    """Whether FILE is a saved plan and not a program."""
    return file.lower().endswith(SAVED_PLAN)


def note_unused_options(file: str, request: Request) -> None:
    """Notes that a saved plan ignores the options of a program."""
    if is_saved_plan(file) and (request.arguments or request.settings or request.job is not None):
        note(
            f"{file} is a saved plan, of one job as it was: ARGUMENTS, -D and --job change nothing"
        )


def read_saved_plan(file: str) -> JobPlan:
    """The plan in a file that `opchain plan FILE --format json` wrote."""
    path = program_file(file).path
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    with clear_errors():
        return from_json(text, str(path))


@contextmanager
def planned(file: str, request: Request) -> Iterator[JobPlan]:
    """Gives the block the plan of FILE, a program or a saved plan; see `captured_program`."""
    if is_saved_plan(file):
        yield read_saved_plan(file)
        return
    with captured_program(file, request) as program:
        yield job_plan(compile_program(program, "job-graph"))


def _as_settings(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    settings = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals:
            raise click.BadParameter(f"'{text}' is not KEY=VALUE", context, parameter)
        settings[key.strip()] = value.strip()
    try:
        read_settings(Configuration.from_dict(settings))
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error
    for key in settings:
        if not is_known_key(key):
            raise click.BadParameter(unknown_key(key), context, parameter)
    if context.info_name not in _STARTING:  # a job that starts says so itself
        for text in keys_without_counterpart(Configuration.from_dict(settings)):
            note(f"{text.partition(' ')[0]} is ignored {text.partition(' ')[2]}")
    return settings


def _as_operator_settings(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    settings = {}
    for text in values:
        key, equals, value = text.partition("=")
        operator, dot, setting = key.strip().rpartition(".")
        if not (operator and dot and setting and equals):
            raise click.BadParameter(f"'{text}' is not OPERATOR.SETTING=VALUE", context, parameter)
        settings[f"{OPERATOR_PREFIX}{operator}.{setting}"] = value.strip()
    return settings


def _completed_keys(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The keys that begin with this text, for completion in a shell."""
    return [CompletionItem(f"{key}=") for key in sorted(known_keys()) if key.startswith(incomplete)]


_NEARLY_THE_SAME = 0.82
"""Names at least this similar to an option's name are taken for typing errors; from 0 to 1."""


class ProgramCommand(click.Command):
    """A command with FILE and ARGUMENTS. An option that opchain does not know is the program's."""

    ignore_unknown_options = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the command line, and notes options of the program that look like options of opchain."""
        own, programs = self._divided(ctx, args)
        rest = super().parse_args(ctx, [*own, "--", *programs] if programs is not None else own)
        if "--" not in args:
            for argument in ctx.params.get("arguments") or ():
                _note_option(argument.partition("=")[0], ctx)
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
            if word == "-m" and files > 0:
                if not words:
                    raise click.BadOptionUsage("-m", "Option '-m' requires an argument.", ctx)
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
    """The file that `python -m` would run, found from the working directory. Nothing is imported.

    Raises:
        CommandError: There is no such module.
    """
    places = [str(Path.cwd()), *sys.path]
    parts = name.split(".")
    hint = ""
    for number, part in enumerate(parts):
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            beside = sorted({module.name for module in iter_modules(places)})
            nearest = get_close_matches(part, beside, n=1, cutoff=0.75)
            hint = (
                f"; did you mean {'.'.join([*parts[:number], *nearest, *parts[number + 1 :]])}?"
                if nearest
                else ""
            )
            break
        is_last = number == len(parts) - 1
        found = list(spec.submodule_search_locations or ())
        if is_last and found:  # a package runs as its __main__
            spec = PathFinder.find_spec("__main__", found)
        if is_last and spec is not None and spec.origin is not None:
            return Path(spec.origin)
        places = found
    raise CommandError(
        f"there is no module {name} in the folder {Path.cwd()} or on the import path{hint}"
    )


def _note_option(name: str, context: click.Context) -> None:
    if not name.startswith("-") or name == "-":
        return
    is_short = not name.startswith("--")
    name = name[:2] if is_short else name
    above = context.find_root()
    if above is not context and name in option_names(above):
        note(
            f"{name} goes to the program; for opchain's option write: opchain {name} {context.info_name} ...; to hide "
            "this note, put -- before the program's options"
        )
        return
    if name in option_names(context, is_short=is_short):
        note(
            f"{name} goes to the program, because it follows an argument of the program; for opchain's {name}, put it "
            "before FILE; to hide this note, put -- before the program's options"
        )
        return
    close = get_close_matches(name, option_names(context), n=1, cutoff=_NEARLY_THE_SAME)
    if close and not is_short:
        note(
            f"{name} goes to the program; opchain's own option is {close[0]}; to hide this note, put -- before the "
            "program's options"
        )
