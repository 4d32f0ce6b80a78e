"""The traceback of a user's error: the frames of the user's files, and what they have called.

Between the line that executes a job and the function that fails lie some twenty frames of opchain; who
wrote neither is not helped by them.
"""

from __future__ import annotations

import builtins
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from traceback import StackSummary, TracebackException
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.commands.failures import GENERATED, Whose, whose_file

if TYPE_CHECKING:
    from types import TracebackType

# The traceback of an executor comes as text, in the message of a cause.
_EXECUTORS = re.compile(
    r"(?<=: on the executor\n)Traceback .*?(?=\n\nThe above exception)", re.DOTALL
)
_FRAME = r'^  File "{}", line \d+, in .*\n(?:    .*\n)*'
_ANY_FRAME = re.compile(_FRAME.format(r"([^\"\n]*)"), re.MULTILINE)
_GENERATED_THAT_CALLS = re.compile(
    _FRAME.format(rf"{GENERATED}[^\n]*") + r"(?=  File )", re.MULTILINE
)
_OPCHAIN_ELSEWHERE = re.compile(r"[/\\]opchain[/\\](?:compiler|runtime)[/\\]")


class UserTraceback(NamedTuple):
    """A traceback as text, and whether frames were left out of it."""

    text: str
    is_shortened: bool


def user_traceback(error: BaseException, program: Path, *, whole: bool = False) -> UserTraceback:
    """The traceback from the program's first line on, with Python's "Did you mean" in every version.

    Args:
        error: What the program raised.
        program: Its file, as Python was told to run it.
        whole: Leaves no frame of opchain out.
    """
    told = TracebackException(type(error), error, _from_file_on(error, program))
    is_shortened = not whole and _shorten(told, program)
    message = "".join(told.format_exception_only())
    text = "".join(told.format()).removesuffix(message) + _with_suggestion(message, error)
    if whole:
        return UserTraceback(text, is_shortened=False)
    shortened = _EXECUTORS.sub(_shorten_text, text)
    return UserTraceback(shortened, is_shortened or shortened != text)


def _from_file_on(error: BaseException, program: Path) -> TracebackType | None:
    """The traceback without the frames that lead into the program."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(program):
        trace = trace.tb_next
    return trace or error.__traceback__


def _shorten(told: TracebackException, program: Path) -> bool:
    """Leaves frames out, of the causes too; says whether there were any."""
    kept = _kept(told.stack, program)
    is_shortened = len(kept) < len(told.stack)
    told.stack = kept
    for other in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        if other is not None:
            is_shortened |= _shorten(other, program)
    return is_shortened


def _shorten_text(found: re.Match[str]) -> str:
    """The traceback of an executor without opchain's frames, unless there are no others."""
    shortened = _ANY_FRAME.sub(lambda frame: "" if _is_opchains(frame[1]) else frame[0], found[0])
    shortened = _GENERATED_THAT_CALLS.sub("", shortened)
    return shortened if _ANY_FRAME.search(shortened) else found[0]


def _is_opchains(name: str) -> bool:
    if name.startswith(GENERATED):
        return False
    return _OPCHAIN_ELSEWHERE.search(name) is not None or whose_file(name, Path()) is Whose.OPCHAIN


def _kept(stack: StackSummary, program: Path) -> StackSummary:
    """The user's frames, and those of libraries that the user has called; else the innermost one.

    Generated code is shown where it fails itself, not where it calls what fails.
    """
    kept = []
    is_called_by_user = False
    generated = None
    for frame in stack:
        owner = whose_file(frame.filename, program)
        if frame.filename.startswith(GENERATED):
            generated = frame
        is_called_by_user = owner is Whose.USER or (is_called_by_user and owner is Whose.LIBRARY)
        if is_called_by_user:
            kept.append(frame)
            generated = None
    if generated is not None:
        kept.append(generated)
    return StackSummary.from_list(kept or stack[-1:])


def _with_suggestion(message: str, error: BaseException) -> str:
    """The message with the name that was probably meant; from 3.12 on `traceback` adds it itself."""
    if sys.version_info >= (3, 12) or not isinstance(error, AttributeError | NameError):
        return message
    if ". Did you mean: " in message:
        return message  # the package exceptiongroup teaches it to the traceback of 3.10
    close = get_close_matches(error.name or "", _names_at_hand(error), n=1)
    if not close or close == [error.name]:
        return message
    said = f": {error}"
    return message.replace(said, f"{said}. Did you mean: '{close[0]}'?", 1)


def _names_at_hand(error: AttributeError | NameError) -> list[str]:
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
