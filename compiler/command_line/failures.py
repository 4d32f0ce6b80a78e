"""Errors of a command: one sentence with the line of the user's program, and the user's part of a traceback.

Every failure of opchain's own commands ends with exit code 2. So a CI job can tell a failure from the answer 1 of
`opchain diff`. Between the line that executes a job and the function that fails there are some twenty frames of
opchain. They do not help the user, so they are left out.
"""

from __future__ import annotations

import builtins
import os
import re
import sys
import sysconfig
import traceback
from contextlib import contextmanager
from difflib import get_close_matches
from enum import Enum
from itertools import takewhile
from pathlib import Path
from pkgutil import iter_modules
from traceback import FrameSummary, StackSummary, TracebackException
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from opchain.compiler.plan.layout import without_controls
from opchain.runtime.errors import MOST_LINES, StreamError, failure_lines, own_folders, short_repr
from opchain.runtime.spark.remote_error import (
    ExecutorTracebackError,
    frames_on_executor,
    showing_whole_tracebacks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType


FAILED = 2
"""The exit code of a command that could not do its work, or whose program failed."""

GENERATED = "<generated"
"""The prefix of the file names of generated code."""

PROGRAM_FAILED = 1
"""The exit code of a program that raises, as with Python."""

MOST_CAUSES = 2
"""The most causes of an error that are shown by a line each."""

_OPCHAINS = own_folders()
_LIBRARIES = tuple(
    os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")
)


class FileOwner(Enum):
    """Who wrote a file that a traceback names."""

    USER = "user"
    OPCHAIN = "opchain"
    LIBRARY = "library"


def wants_traceback() -> bool:
    """Whether the command line has `opchain --traceback`."""
    context = click.get_current_context(silent=True)
    return bool(context and context.find_root().params.get("traceback"))


class CommandError(click.ClickException):
    """A message for the user, which begins with `command`; with `--traceback`, also the traceback of its cause."""

    exit_code = FAILED

    def __init__(self, message: str, command: str = "opchain") -> None:
        super().__init__(message)
        self._command = command
        # click shows errors after it has left the context of the command.
        self._wants_traceback = wants_traceback()

    def show(self, file: IO[Any] | None = None) -> None:
        """Prints it to standard error."""
        if self._wants_traceback and self.__cause__ is not None:
            shown = without_controls("".join(traceback.format_exception(self.__cause__)))
            click.echo(shown, file=file, err=True)
        shown = without_controls(f"{self._command}: {self.format_message()}")
        click.echo(shown, file=file, err=True)


class ProgramFailedError(CommandError):
    """A job of the program had started, and failed."""

    exit_code = PROGRAM_FAILED


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turns a StreamError into a CommandError. Other exceptions are bugs, and stay as they are."""
    try:
        yield
    except StreamError as error:
        raise CommandError(str(error)) from error


def failure_of(error: BaseException, program: Path, *, while_it_ran: bool = False) -> CommandError:
    """How a program failed, in one sentence.

    Args:
        error: The exception that it raised.
        program: Its file.
        while_it_ran: Whether a job had started. Otherwise the program is refused.
    """
    if isinstance(error, CommandError):
        return error
    place = place_of(error.__traceback__, program)
    if isinstance(error, SystemExit):
        message = f"{program} {_exit_text(error)}{_at(place)}"
    elif isinstance(error, StreamError):
        # The message names the operator and the line.
        what = "failed" if while_it_ran else "is refused"
        message = f"{program} {what}{_at(place)}: {error}"
        if while_it_ran:
            message = "\n  ".join((message, *getattr(error, "__notes__", ())))
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
    """What to do about an error of Python that opchain knows; None for others."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "pyflink":
        return "to run a PyFlink program, change its imports from pyflink to opchain: opchain port FILE"
    return None


def place_of(trace: TracebackType | None, program: Path) -> str | None:
    """The innermost line of the user's code, as `clicks.py:14`; None if the traceback has none.

    The user's code is every file that is neither opchain's, nor Python's, nor installed.
    """
    place = None
    for frame in traceback.extract_tb(trace):
        if file_owner(frame.filename, program) is FileOwner.USER:
            place = f"{Path(frame.filename).name}:{frame.lineno}"
    return place


def file_owner(name: str, program: Path) -> FileOwner:
    """Who wrote a file. Generated code is opchain's; names without a file, such as `<string>`, are a library's."""
    if name.startswith(GENERATED):  # not a path: it has the names of operators
        return FileOwner.OPCHAIN
    path = os.path.realpath(name)
    if path == os.path.realpath(program):
        return FileOwner.USER
    if path.startswith(_OPCHAINS):
        return FileOwner.OPCHAIN
    if path.startswith(_LIBRARIES) or not os.path.exists(path):  # noqa: PTH110 - false where nobody may look
        return FileOwner.LIBRARY
    return FileOwner.USER


def _at(place: str | None) -> str:
    return "" if place is None else f" at {place}"


def _exit_text(error: SystemExit) -> str:
    if isinstance(error.code, int) or error.code is None:
        return f"calls sys.exit({'' if error.code is None else error.code})"
    return f"exits with {short_repr(error.code)}"


class UserTraceback(NamedTuple):
    """A traceback as text, and whether frames were left out of it."""

    text: str
    is_shortened: bool


def user_traceback(error: BaseException, program: Path, *, whole: bool = False) -> UserTraceback:
    """The traceback from the program's first line on, with Python's "Did you mean" in every version.

    It has less than MOST_LINES lines, unless it is whole: the note that something is left out is the last line.

    Args:
        error: The exception that the program raised.
        program: Its file, as it was passed to Python.
        whole: Whether frames of opchain are shown.
    """
    if isinstance(error.__cause__, ExecutorTracebackError) and not whole:
        called = _shown_frames(traceback.extract_tb(_from_file_on(error, program)), program)[-1:]
        return _in_few_lines(error, called, frames_on_executor(error))
    with showing_whole_tracebacks(whole):
        summary = TracebackException(type(error), error, _from_file_on(error, program))
    is_shortened = not whole and _shorten(summary, program)
    message = "".join(summary.format_exception_only())
    text = "".join(summary.format()).removesuffix(message) + _with_suggestion(message, error)
    if not whole and text.count("\n") >= MOST_LINES:
        stack = traceback.extract_tb(_from_file_on(error, program))
        count = sum(1 for _ in takewhile(lambda frame: _is_users(frame, program), stack))
        called = summary.stack[count:]
        frames = [frame for frame in called if _has_users_frame([frame], program)] or called
        calling = summary.stack[:count][-1:]
        return _in_few_lines(error, calling, _lines_of(frames), _causes(error, program))
    return UserTraceback(text, is_shortened)


def _in_few_lines(
    error: BaseException,
    called: list[FrameSummary],
    frames: list[list[str]],
    causes: Sequence[str] = (),
) -> UserTraceback:
    """The line that executed the job, and the innermost lines and the place of the failure in its task."""
    lines = ["Traceback (most recent call last):"]
    lines += [line for frame in _lines_of(called) for line in frame]
    lines += failure_lines(error, frames, MOST_LINES - 1 - len(lines), causes)
    text = "".join(f"{line}\n" for line in lines)
    return UserTraceback(_with_suggestion(text, error), is_shortened=True)


def _lines_of(frames: list[FrameSummary]) -> list[list[str]]:
    """The lines of each frame, without the marks under a line of code."""
    return [
        [line for line in frame.splitlines() if line.strip(" ^~")]
        for frame in StackSummary.from_list(frames).format()
    ]


def _causes(error: BaseException, program: Path) -> list[str]:
    """A line for each exception in the user's code that led to the error, the last one first."""
    lines: list[str] = []
    cause = _cause(error)
    while cause is not None and len(lines) < MOST_CAUSES:
        if _has_users_frame(traceback.extract_tb(cause.__traceback__), program):
            text = traceback.format_exception_only(cause)[0].splitlines()[0]
            place = place_of(cause.__traceback__, program)
            lines.append(f"caused by {text}" + ("" if place is None else f" ({place})"))
        cause = _cause(cause)
    return lines


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _from_file_on(error: BaseException, program: Path) -> TracebackType | None:
    """The traceback without the frames outside the program's file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(program):
        trace = trace.tb_next
    return trace or error.__traceback__


def _shorten(summary: TracebackException, program: Path) -> bool:
    """Removes frames, also from the causes, and causes without code of the user; returns whether there were any.

    The message of an error of opchain says what its cause was.
    """
    kept = _shown_frames(summary.stack, program)
    is_shortened = len(kept) < len(summary.stack)
    summary.stack = kept
    for name in ("__cause__", "__context__"):
        other = getattr(summary, name)
        if other is not None and not _has_users_frame(other.stack, program):
            setattr(summary, name, None)
            is_shortened = True
    for other in (
        summary.__cause__,
        summary.__context__,
        *(getattr(summary, "exceptions", None) or ()),
    ):
        if other is not None:
            is_shortened |= _shorten(other, program)
    return is_shortened


def _has_users_frame(stack: Sequence[FrameSummary], program: Path) -> bool:
    """Whether code of the user is in a traceback; generated code is the user's functions."""
    return any(frame.filename.startswith(GENERATED) or _is_users(frame, program) for frame in stack)


def _is_users(frame: FrameSummary, program: Path) -> bool:
    return file_owner(frame.filename, program) is FileOwner.USER


def _shown_frames(stack: StackSummary, program: Path) -> StackSummary:
    """The user's frames, and frames of libraries that the user has called; the innermost frame if there are none.

    A frame of generated code is shown only if the error was raised in it.
    """
    kept = []
    is_called_by_user = False
    generated = None
    for frame in stack:
        owner = file_owner(frame.filename, program)
        if frame.filename.startswith(GENERATED):
            generated = frame
        is_called_by_user = owner is FileOwner.USER or (
            is_called_by_user and owner is FileOwner.LIBRARY
        )
        if is_called_by_user:
            kept.append(frame)
            generated = None
    if generated is not None:
        kept.append(generated)
    return StackSummary.from_list(kept or stack[-1:])


def _with_suggestion(message: str, error: BaseException) -> str:
    """The message with a similar name. From Python 3.12 on, `traceback` adds it for attributes, variables and imports."""
    if ". Did you mean: " in message:
        return message  # the package exceptiongroup adds it in Python 3.10
    close: str | None = None
    if isinstance(error, ModuleNotFoundError):
        close = _similar_module(error.name or "")
    elif isinstance(error, ImportError):
        unknown = _NOT_IN_MODULE.match(str(error))
        module = sys.modules.get(error.name or "")
        close = _similar(unknown[1], _attributes(module)) if unknown and module else None
    elif isinstance(error, AttributeError | NameError):
        close = _similar(error.name or "", _known_names(error))
    if close is None:
        return message
    said = f": {error}"
    return message.replace(said, f"{said}. Did you mean: '{close}'?", 1)


_NOT_IN_MODULE = re.compile(r"cannot import name '(\w+)'")


def _similar(name: str, names: Iterable[str]) -> str | None:
    close = get_close_matches(name, names, n=1)
    return close[0] if close and close[0] != name else None


def _similar_module(name: str) -> str | None:
    """A module of the same package with a similar name."""
    package, _, unknown = name.rpartition(".")
    path = getattr(sys.modules.get(package), "__path__", None)
    if path is None:
        return None
    close = _similar(unknown, sorted(module.name for module in iter_modules(path)))
    return None if close is None else f"{package}.{close}"


def _known_names(error: AttributeError | NameError) -> list[str]:
    if isinstance(error, AttributeError):
        return _attributes(error.obj)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return []
    frame = trace.tb_frame
    return sorted({*frame.f_locals, *frame.f_globals, *dir(builtins)})


def _attributes(value: Any) -> list[str]:
    try:
        return dir(value)
    except Exception:  # noqa: BLE001 - a __dir__ of the user's may raise anything; there is no suggestion then
        return []
