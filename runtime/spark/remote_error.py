"""Carries a task's exception to the driver inside the text of Spark's error.

Spark forwards the text that a Python worker prints for its exception. A task appends a token to that text: its
pickled exception and an HMAC. The driver unpickles the token and raises the type that the user's function raised.

The same text holds values of records, so anybody who writes input can put a token there. The driver therefore
makes a secret for each job and ships it to the tasks, and unpickles only tokens that this secret signed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import pickle
import re
import secrets
import traceback
import zlib
from dataclasses import dataclass, field
from typing import Any

from opchain.runtime.errors import TaskFailedError, add_note
from opchain.runtime.records.record_pickle import dump_records

MOST_BYTES = 256 * 1024
"""An exception whose pickle is longer arrives as text: it would be in every log of the job."""

MOST_TRACEBACK_CHARACTERS = 20_000

_TOKEN = re.compile(r"<opchain error ([0-9a-f]{64}) ([A-Za-z0-9+/=]+)>")


class RemoteError(Exception):
    """What a task raises on Spark: the token of the real exception, which is its cause."""


class ExecutorTracebackError(Exception):
    """The traceback of an executor as text: the cause of the exception that the driver raises.

    Attributes:
        spark_error: What Spark raised.
    """

    def __init__(self, text: str, spark_error: BaseException | None = None) -> None:
        super().__init__(text)
        self.spark_error = spark_error

    def __str__(self) -> str:
        return f"on the executor\n{self.args[0]}"


@dataclass(frozen=True, slots=True)
class SealedError:
    """What a token holds: the exception, or what can be said of it, its notes and its traceback."""

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
            type_name=_type_name(error),
            message=_text(error),
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
    """A text for people."""
    return _TOKEN.sub("", text)


def revived(parts: SealedError, spark_error: BaseException | None = None) -> BaseException:
    """The exception to raise in the driver; its cause is the executor's traceback.

    It is of the type that the task raised, with its notes. One that could not be pickled, or whose class
    cannot be found here, becomes a TaskFailedError that names the type.
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
    return error


def _pickled(error: BaseException) -> bytes | None:
    """The exception, if it comes back as it went; else its class, arguments and attributes, if those do."""
    state = {name: value for name, value in vars(error).items() if name != "__notes__"}
    for form in (error, (type(error), error.args, state), (type(error), error.args, {})):
        try:
            data = dump_records(form)
            if len(data) > MOST_BYTES:
                continue
            back = _rebuilt(pickle.loads(data))
            if type(back) is type(error) and _text(back) == _text(error):
                return data
        except Exception:  # noqa: BLE001, S112 - the user's class may do anything; try the next
            continue
    return None


def _rebuilt(form: Any) -> BaseException:
    if isinstance(form, BaseException):
        if hasattr(form, "__notes__"):
            del form.__notes__  # they are sent automatically
        return form
    kind, arguments, state = form
    error: BaseException = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(state)
    return error


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"<its str raises {type(failure).__name__}>"


def _traceback(error: BaseException) -> str:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if len(text) > MOST_TRACEBACK_CHARACTERS:
        half = MOST_TRACEBACK_CHARACTERS // 2
        text = f"{text[:half]}\n...\n{text[-half:]}"
    return text.rstrip("\n")
