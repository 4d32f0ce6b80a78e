"""What a command says when it cannot do its work: one sentence with the line of the user's program.

Every failure of opchain's own commands ends with exit code 2, so that a CI job can tell it from the
answer 1 of `opchain diff`.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

import opchain.compiler
import opchain.runtime
from opchain.runtime.errors import StreamError, short_repr

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

FAILED = 2
"""The exit code of a command that could not do its work, or whose program failed."""

GENERATED = "<generated"
"""How the names begin under which generated code is compiled."""

PROGRAM_FAILED = 1
"""The exit code of a program that raises, as Python has it."""

_OPCHAINS = tuple(map(os.path.realpath, (*opchain.compiler.__path__, *opchain.runtime.__path__)))
_LIBRARIES = tuple(
    os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")
)


class Whose(Enum):
    """Who wrote a file that a traceback names."""

    USER = "user"
    OPCHAIN = "opchain"
    LIBRARY = "library"


def wants_traceback() -> bool:
    """Whether `opchain --traceback` was said."""
    context = click.get_current_context(silent=True)
    return bool(context and context.find_root().params.get("traceback"))


class CommandError(click.ClickException):
    """A message for the user; with `--traceback` also where its cause was raised."""

    exit_code = FAILED

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # click shows errors when the command's context is gone.
        self._wants_traceback = wants_traceback()

    def show(self, file: IO[Any] | None = None) -> None:
        """Prints it to standard error."""
        if self._wants_traceback and self.__cause__ is not None:
            click.echo("".join(traceback.format_exception(self.__cause__)), file=file, err=True)
        click.echo(f"opchain: {self.format_message()}", file=file, err=True)


class ProgramFailedError(CommandError):
    """A program was not refused: a job of it had begun, and failed."""

    exit_code = PROGRAM_FAILED


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turns what opchain refuses on purpose into a CommandError; anything else is a bug and stays."""
    try:
        yield
    except StreamError as error:
        raise CommandError(str(error)) from error


def failure_of(error: BaseException, program: Path, *, while_it_ran: bool = False) -> CommandError:
    """How a program failed, in one sentence.

    Args:
        error: What it raised.
        program: Its file.
        while_it_ran: A job of it had begun, so that nothing was refused.
    """
    if isinstance(error, CommandError):
        return error
    place = place_of(error.__traceback__, program)
    if isinstance(error, SystemExit):
        message = f"{program} {_exit_text(error)}{_at(place)}"
    elif isinstance(error, StreamError):
        # These say themselves which operator and line they mean.
        what = "failed" if while_it_ran else "is refused"
        message = f"{program} {what}{_at(place)}: {error}"
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
        hint = hint_for(error)
        advice = "" if hint is None else f"; {hint}"
        message = f"{program} failed{_at(place)}: {text}{notes}{advice}"
    failure = ProgramFailedError(message) if while_it_ran else CommandError(message)
    failure.__cause__ = error
    return failure


def hint_for(error: BaseException) -> str | None:
    """What to do about an error that is Python's, and that opchain knows how to mend; None otherwise."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "pyflink":
        return "a PyFlink program runs here when its imports say opchain in the place of pyflink"
    return None


def place_of(trace: TracebackType | None, program: Path) -> str | None:
    """The innermost line of the user's own code, as `clicks.py:14`; None where there is none.

    The user's code is the program's file and whatever else is not Python's, opchain's or installed.
    """
    place = None
    for frame in traceback.extract_tb(trace):
        if whose_file(frame.filename, program) is Whose.USER:
            place = f"{Path(frame.filename).name}:{frame.lineno}"
    return place


def whose_file(name: str, program: Path) -> Whose:
    """Who wrote a file; what is none, as `<string>`, counts as a library, generated code as opchain's."""
    path = os.path.realpath(name)
    if path == os.path.realpath(program):
        return Whose.USER
    if path.startswith(_OPCHAINS) or name.startswith(GENERATED):
        return Whose.OPCHAIN
    if path.startswith(_LIBRARIES) or not Path(path).exists():
        return Whose.LIBRARY
    return Whose.USER


def _at(place: str | None) -> str:
    return "" if place is None else f" at {place}"


def _exit_text(error: SystemExit) -> str:
    if isinstance(error.code, int) or error.code is None:
        return f"calls sys.exit({'' if error.code is None else error.code})"
    return f"ends itself with {short_repr(error.code)}"
