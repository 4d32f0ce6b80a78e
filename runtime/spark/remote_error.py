"""Carries a task's exception to the driver inside the text of Spark's error.

Spark forwards the text that a Python worker prints for its exception. A task appends a token to that text: its
pickled exception and an HMAC. The driver unpickles the token and raises the type that the user's function raised.

The same text holds values of records, so anybody who writes input can put a token there. The driver therefore
makes a secret for each job and ships it to the tasks, and unpickles only tokens that this secret signed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import pickle
import re
import secrets
import sys
import traceback
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.runtime.errors import (
    MOST_LINES,
    TaskFailedError,
    add_note,
    failure_lines,
    text_of,
    type_name,
)
from opchain.runtime.records.record_pickle import dump_records

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 256 * 1024
"""A larger exception is sent as text, because its pickle would be in every log of the job."""

MOST_TRACEBACK_CHARACTERS = 20_000


@contextlib.contextmanager
def showing_whole_tracebacks(is_wanted: bool = True) -> Iterator[None]:
    """Within the block tracebacks of executors are shown as a whole."""
    before = ExecutorTracebackError.is_shown_whole
    ExecutorTracebackError.is_shown_whole = is_wanted
    try:
        yield
    finally:
        ExecutorTracebackError.is_shown_whole = before


_TRACEBACK = "Traceback (most recent call last):\n"
_FRAME = re.compile(r'^  File "([^"\n]*)", line \d+, in .*\n(?:    .*(?:\n|\Z))*', re.MULTILINE)
_OWN_FILE = re.compile(r"[/\\]opchain[/\\](?:compiler|runtime)[/\\]")
_JAVA_LINES = 3

_TOKEN = re.compile(r"<opchain error ([0-9a-f]{64}) ([A-Za-z0-9+/=]+)>")


class RemoteError(Exception):
    """The exception that a task raises on Spark: the token of the real exception, which is its cause."""


class ExecutorTracebackError(Exception):
    """The traceback of an executor as text: the cause of the exception that the driver raises.

    `str` shows only the frames of the user's functions, or the first lines of a Java stack trace.

    Attributes:
        text: The whole traceback, or Spark's message.
        spark_error: The exception of Spark.
        is_shown_whole: Whether `str` of each such error shows the whole traceback (`opchain run -v`).
    """

    is_shown_whole: ClassVar[bool] = False

    def __init__(self, text: str, spark_error: BaseException | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.spark_error = spark_error

    def __str__(self) -> str:
        if self.is_shown_whole:
            return f"on the executor\n{self.text}"
        frames = self.frames()
        lines = [line for frame in frames for line in frame] or self.text.splitlines()[:_JAVA_LINES]
        return "\n".join(("on the executor", *lines))

    def frames(self) -> list[list[str]]:
        """The lines of each frame outside opchain, the innermost last; empty if the text has no traceback.

        A frame of generated code is included only if it is the innermost one.
        """
        last = self.text.rpartition(_TRACEBACK)[2] if _TRACEBACK in self.text else ""
        found = [
            (frame[1], [line for line in frame[0].splitlines() if line.strip(" ^~")])
            for frame in _FRAME.finditer(last)
        ]
        return [
            lines
            for number, (name, lines) in enumerate(found, 1)
            if not _OWN_FILE.search(name)
            and (number == len(found) or not name.startswith("<generated"))
        ]


@dataclass(frozen=True, slots=True)
class SealedError:
    """The contents of a token: the exception, or its type and message, its notes and its traceback."""

    pickled: bytes | None
    type_name: str
    message: str
    notes: tuple[str, ...]
    traceback: str


@dataclass(frozen=True, slots=True)
class ErrorSeal:
    """Signs the exceptions of a job's tasks, and reads only exceptions that it signed.

    The driver makes one for each job and ships it to the tasks. Its repr hides the secret, since errors and logs
    may show it.
    """

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def sealed(self, error: BaseException) -> RemoteError:
        """The exception for Spark. Raise it from `error`, so that the executor's log shows both."""
        parts = SealedError(
            pickled=_pickled(error),
            type_name=type_name(error),
            message=text_of(error),
            notes=tuple(str(note) for note in getattr(error, "__notes__", ())),
            traceback=_traceback(error),
        )
        fields = (parts.pickled, parts.type_name, parts.message, parts.notes, parts.traceback)
        body = base64.b64encode(zlib.compress(pickle.dumps(fields, protocol=5))).decode("ascii")
        return RemoteError(f"<opchain error {self._tag(body)} {body}>")

    def unsealed(self, text: str) -> SealedError | None:
        """The contents of the last token in a text that this job signed; None if there is none.

        Nothing of a token with another signature is decoded: it is input data, or Spark has cut it short.
        """
        for tag, body in reversed(_TOKEN.findall(text)):
            if hmac.compare_digest(tag, self._tag(body)):
                return SealedError(*pickle.loads(zlib.decompress(base64.b64decode(body))))
        return None

    def _tag(self, body: str) -> str:
        return hmac.new(self.secret, body.encode("ascii"), hashlib.sha256).hexdigest()


def without_token(text: str) -> str:
    """A text without tokens, for people."""
    return _TOKEN.sub("", text)


def original_exception(
    parts: SealedError, spark_error: BaseException | None = None
) -> BaseException:
    """The exception to raise in the driver; its cause is the executor's traceback.

    It has the type of the task's exception, and its notes. If the exception cannot be pickled, or its class cannot be
    imported here, the result is a TaskFailedError that names the type.
    """
    error: BaseException | None = None
    if parts.pickled is not None:
        try:
            error = _rebuilt(pickle.loads(parts.pickled))
        except Exception:  # noqa: BLE001 - unpickling runs the user's code
            error = None
    if error is None:
        error = TaskFailedError(f"{parts.type_name}: {parts.message}")
    for note in parts.notes:
        add_note(error, note)
    error.__cause__ = ExecutorTracebackError(parts.traceback, spark_error)
    _shorten_in_notebooks(error)
    return error


def frames_on_executor(error: BaseException) -> list[list[str]]:
    """The lines of each frame of the user's functions in the task that raised the error."""
    cause = error.__cause__
    return cause.frames() if isinstance(cause, ExecutorTracebackError) else []


def _shorten_in_notebooks(error: BaseException) -> None:
    """Makes IPython show the failure in a few lines, by a method that IPython calls on exceptions."""
    if "IPython" not in sys.modules or ExecutorTracebackError.is_shown_whole:
        return
    with contextlib.suppress(AttributeError, TypeError):  # a class with slots
        error._render_traceback_ = lambda: [  # type: ignore[attr-defined]
            *failure_lines(error, frames_on_executor(error), MOST_LINES - 1),
            "the error's __cause__.text has the whole traceback of the executor",
        ]


def _pickled(error: BaseException) -> bytes | None:
    """The pickled exception, if it survives pickling; otherwise its class, arguments and attributes, if these do.

    A KeyboardInterrupt is not pickled: the driver would take it for its own.
    """
    if not isinstance(error, Exception):
        return None
    state = {name: value for name, value in vars(error).items() if name != "__notes__"}
    for form in (error, (type(error), error.args, state), (type(error), error.args, {})):
        try:
            data = dump_records(form)
            if len(data) > MOST_BYTES:
                continue
            back = _rebuilt(pickle.loads(data))
            if type(back) is type(error) and text_of(back) == text_of(error):
                return data
        except Exception:  # noqa: BLE001, S112 - the user's class may do anything; try the next
            continue
    return None


def _rebuilt(form: Any) -> BaseException:
    if isinstance(form, BaseException):
        if hasattr(form, "__notes__"):
            del form.__notes__  # notes are sent separately
        return form
    kind, arguments, state = form
    error: BaseException = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(state)
    return error


def _traceback(error: BaseException) -> str:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if len(text) > MOST_TRACEBACK_CHARACTERS:
        half = MOST_TRACEBACK_CHARACTERS // 2
        text = f"{text[:half]}\n...\n{text[-half:]}"
    return text.rstrip("\n")
