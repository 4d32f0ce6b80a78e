"""The exceptions of opchain, texts for messages, and imports of optional libraries.

`StreamError` is the root, so a program can catch every error that opchain raises on purpose. Its subclasses say who
can solve the problem: the program's author (`GraphError`, and errors of records and keys), the owner of state and
checkpoints (`StateError`, `CheckpointError`), the operator of the machines (`LostBufferError`, `SpillError`), or
opchain's developers (`InternalError`). Wrong arguments of a single call raise `TypeError` and `ValueError`. An
exception of a user's function keeps its type.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

ALLOW_NON_RESTORED_STATE = "set execution.state-recovery.ignore-unclaimed-state = true"
"""What to do to start without a part of the state, for messages."""

COMMIT_FIRST = (
    "start the previous program, stop it with 'opchain stop', and start this program from the savepoint, with another "
    "directory of checkpoints"
)
"""What to do about output that waits for its commit in the target of a previous program, for messages."""

_REPORT = "this is a mistake in opchain, not in the program: please report it with this text"


class StreamError(Exception):
    """Root of every error that opchain raises on purpose.

    What to do: Read the message. It names the operator and the line of the program, what was found and what to change.
    """

    def _render_traceback_(self) -> list[str]:
        """IPython shows this traceback: the lines of the program, without the lines of opchain."""
        return short_traceback(self)


class GraphError(StreamError):
    """The program is wrong: its operators cannot be wired, translated or run as written.

    `phase` is the step that refused the program: `build` (a call of the API), `stream_graph` or `job_graph` (the
    compiler).

    What to do: Correct the call that the message names. `opchain lint FILE` finds such mistakes without running the
    job.
    """

    phase: ClassVar[str] = "build"


class UnsupportedFeatureError(GraphError):
    """The program uses a feature of Flink that opchain does not support.

    What to do: Use the replacement that the message names. The [support table](support.md) lists all refused calls, and
    `opchain port FILE` finds them in a program.
    """


class UnpicklableFunctionError(GraphError):
    """A function, or what it captures, cannot be pickled, and so cannot reach the tasks.

    What to do: The message names the object, such as a lock or a connection. Create it in `open()` instead.
    """

    phase: ClassVar[str] = "job_graph"


class KeyTypeError(StreamError, TypeError):
    """A key is not of the type that its stream declares.

    What to do: Correct the `key_type` of `key_by`, or let the key selector convert its result to that type.
    """


class UnstableKeyError(KeyTypeError):
    """A key whose hash would differ between processes, so that it has no key group.

    What to do: Use a key of plain values, such as a str, an int, or a tuple of them.
    """


class PartitionError(StreamError, ValueError):
    """A custom partitioner returned a channel that does not exist.

    What to do: Let the partitioner return an int from 0 to one less than the number of channels.
    """


class UnpicklableRecordError(StreamError, TypeError):
    """A record that must be sent to another task cannot be pickled.

    What to do: Emit plain values, or chain the consumer to the operator so that no record is sent.

    Args:
        record: The record as text.
        reason: What pickle said.
        where: The operator that sends it and its call site, where known.
    """

    def __init__(self, record: str, reason: str, where: str = "") -> None:
        super().__init__(record, reason, where)
        self.record = record
        self.reason = reason
        self.where = where

    def __str__(self) -> str:
        text = (
            f"the record {self.record} cannot be pickled ({self.reason}), so it cannot be sent to "
            "another task: emit plain values, or chain its consumer to the operator"
        )
        return f"{self.where}: {text}" if self.where else text


class RecordSchemaError(StreamError, ValueError):
    """A record does not match its target columns, or a column does not match the records.

    What to do: The message names the column. Correct the declared type or the record, or let the column be nullable.
    """


class UnreadableRecordError(StreamError):
    """A record that arrived whole cannot be unpickled in this process.

    What to do: Install the module of the record's class on all executors, in the version of the driver.
    """


class ChangedCodeError(StreamError):
    """A function that the program inlines is another one than when the program was compiled.

    Records that go to another task have only the fields that this task's functions read. Another function may need more.

    What to do: Do not replace functions or methods while a job runs, and install the modules of the driver on all executors. Or
    send whole records: see the setting that leaves out rules of the code generator.
    """


class WireFormatError(StreamError):
    """Bytes from another task are corrupt, cut short, or not in the format that is expected.

    What to do: Install the same version of opchain on the driver and on all executors. If they are the same, report
    it.
    """


class LostBufferError(StreamError):
    """A task's input is incomplete, or contains a buffer twice.

    What to do: Start the job again. If the error comes back, report it with its message.
    """


class SpillError(StreamError):
    """A task cannot write or read a spill file on a local disk.

    What to do: Free disk space, or set another disk in `SPARK_LOCAL_DIRS` or `spark.local.dir`.
    """


class SinkError(StreamError):
    """The target of a sink cannot be reached, or refuses the output.

    What to do: Correct the server, its permissions or the records, as the message says. Then start the job again.
    """


class SparkUnavailableError(StreamError):
    """Spark is not installed, cannot start, or lacks a feature or library that the job needs.

    What to do: Install Java and `opchain[spark]`, or set `SPARK_HOME`. `opchain run --local FILE` needs no Spark.
    """


class TaskFailedError(StreamError):
    """A task failed without an exception of the user's code: its process died, or the job was stopped.

    What to do: Look in Spark's log for the lost executor. If it ran out of memory, raise
    `spark.executor.memoryOverhead`.
    """


class StateError(StreamError):
    """Keyed or operator state cannot be read, written or restored as asked.

    What to do: Use the name and type with which the state was first registered, or another name to begin with empty
    state.
    """


class CheckpointError(StreamError):
    """A checkpoint or savepoint cannot be taken, completed or found.

    What to do: `opchain checkpoint ls` shows the checkpoints of a directory. If no operator claims some state, give
    operators their uids, or discard the state with `opchain run --allow-non-restored-state`. `opchain checkpoint diff`
    shows such state in advance.
    """


class CorruptCheckpointError(CheckpointError):
    """A file of a checkpoint is missing, cut short, altered, or not in a format that this version reads.

    What to do: `opchain checkpoint verify` names all damaged files. Resume from an earlier checkpoint, or from a
    savepoint.

    Args:
        name: The file, as its storage names it.
        problem: What is wrong with it.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name = name
        self.problem = problem

    def __str__(self) -> str:
        return f"checkpoint file {self.name} {self.problem}"


class CheckpointFailedError(CheckpointError):
    """The storage did not accept the files of an epoch's checkpoint, or the epoch took too long.

    What to do: Check free space and permissions of the storage. The driver retries the epoch as often as
    `execution.checkpointing.tolerable-failed-checkpoints` allows. Then the job fails, and its restart strategy decides
    whether it starts again.
    """


class CheckpointInUseError(CheckpointError):
    """Another run uses the same checkpoint directory, or has taken it over.

    What to do: Stop the other run, wait until its lease ends (60 s after its last heartbeat), or use another
    directory.
    """


class InternalError(StreamError):
    """A bug in opchain: the program is not the cause.

    What to do: Report it, with the whole message.
    """

    def __str__(self) -> str:
        return f"{super().__str__()} ({_REPORT})"


def add_note(error: BaseException, note: str) -> None:
    """Adds a line that tracebacks show below the message, without touching type or message.

    Python 3.10 has no `add_note` and shows no notes; they are kept where PEP 678 keeps them.
    """
    notes = getattr(error, "__notes__", None)
    if notes is None:
        notes = []
        error.__notes__ = notes  # type: ignore[attr-defined]
    notes.append(note)


MOST_LINES = 12
"""The most lines of a failure, unless whole tracebacks are shown."""

_MESSAGE_LINES = 3
_MOST_CHARACTERS = 500
_TRACEBACK = "Traceback (most recent call last):"


def failure_lines(
    error: BaseException,
    frames: list[list[str]],
    room: int = MOST_LINES,
    causes: Sequence[str] = (),
) -> list[str]:
    """A failure in a few lines: the innermost frames of the user's code, the message, the causes, and the notes.

    Args:
        error: The error of a task.
        frames: The lines of each frame, the innermost last.
        room: The most lines. The message, the causes and the notes take precedence over frames.
        causes: A line for each exception that led to the error.
    """
    message = _shortened(f"{type_name(error)}: {text_of(error)}")
    notes = [_cut(" ".join(str(note).splitlines())) for note in getattr(error, "__notes__", ())]
    lines = [*message, *map(_cut, causes), *notes]
    frames = list(frames)
    while frames and len(lines) + len(frames[-1]) <= room:
        lines = [*map(_cut, frames.pop()), *lines]
    return lines


def _shortened(message: str) -> list[str]:
    """The first lines of a message. If it quotes a traceback, as of a Python worker: the first line, and the error."""
    lines = [_cut(line) for line in message.splitlines() if line.strip()]
    if len(lines) <= _MESSAGE_LINES:
        return lines
    if _TRACEBACK in lines:
        last_frame = max(
            number for number, line in enumerate(lines) if line[0] == " " or line == _TRACEBACK
        )
        quoted = lines[last_frame + 1 :][:_MESSAGE_LINES]
        if quoted:
            return [lines[0], *quoted]
    return [*lines[: _MESSAGE_LINES - 1], "..."]


def _cut(line: str) -> str:
    return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 3]}..."


def type_name(error: BaseException) -> str:
    """The name of an error's class, with its module as Python shows it."""
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def text_of(error: BaseException) -> str:
    """The message of an error, even if its `__str__` raises."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"<its str raises {type(failure).__name__}>"


def user_frames(error: BaseException) -> list[list[str]]:
    """The lines of each frame of an error in this process, without the frames of opchain, Spark and IPython.

    Lines of inlined functions are in frames of generated code.
    """
    import traceback  # noqa: PLC0415 - after a failure only

    return [
        [line for line in traceback.format_list([frame])[0].splitlines() if line.strip(" ^~")]
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<generated")
        or (
            not frame.filename.startswith(("<", *own_folders()))
            and not any(part in frame.filename for part in _NOT_THE_PROGRAMS)
        )
    ]


def short_traceback(error: BaseException) -> list[str]:
    """A traceback in a few lines, without the frames of opchain, Spark and IPython: the call, and where it failed."""
    frames = user_frames(error)
    head = ["Traceback (most recent call last):", *(frames[0] if frames else ())]
    return [*head, *failure_lines(error, frames[1:], MOST_LINES - len(head))]


def shorten_notebook_refusals() -> None:
    """In IPython, shortens the tracebacks of errors that opchain raises while a program is built.

    The hook of the shell is used, unless something else has taken it.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or shell.custom_exceptions:
        return

    def show(
        shell: Any, kind: Any, error: BaseException, trace: Any, tb_offset: Any = None
    ) -> None:
        step = trace
        while step.tb_next is not None:
            step = step.tb_next
        if step.tb_frame.f_code.co_filename.startswith(own_folders()):
            shorten_notebook_tracebacks(error)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((TypeError, ValueError, AttributeError), show)


_NOT_THE_PROGRAMS = tuple(
    f"{os.sep}{name}{os.sep}" for name in ("pyspark", "py4j", "IPython", "ipykernel", "concurrent")
)


def own_folders() -> tuple[str, ...]:
    """The folders of this package, with their real paths; two of them are links in a checkout."""
    runtime = Path(__file__).parent
    package = runtime.parent
    resolved = (folder.resolve() for folder in (package, runtime, package / "compiler"))
    return tuple(f"{folder}{os.sep}" for folder in (package, *resolved))


def shorten_notebook_tracebacks(error: BaseException) -> None:
    """In IPython, shortens the traceback of an error to the frames of the program."""
    if "IPython" in sys.modules and not hasattr(error, "_render_traceback_"):
        with contextlib.suppress(AttributeError, TypeError):  # a class with slots
            error._render_traceback_ = lambda: short_traceback(error)  # type: ignore[attr-defined]


def show_notes(error: BaseException) -> None:
    """Makes sure that a traceback shows the error's notes.

    Python 3.11 shows notes. For Python 3.10, the notes become part of the message if the message is the only argument.
    Other exceptions, such as OSError, read their arguments, so they stay as they are.
    """
    notes = getattr(error, "__notes__", ())
    if sys.version_info < (3, 11) and notes and error.args == (str(error),):
        error.args = ("\n".join((str(error), *notes)),)


_LEFT_OUT = re.compile(
    r"(?:(?<=[{ ])(?:'\.\.\.key': .*, )?'\.\.\.': |(?<=[(\[= ]))Ellipsis(?=[,)\]}])"
)
_ADDRESS = re.compile(r"(?<=\w) at 0x[0-9a-f]+(?=>)")


def short_repr(value: object, limit: int = 80) -> str:
    """One line that shows a value in a message, at most `limit` characters long.

    A user's `__repr__` may fail or return many lines; the message about the value must not fail with it. Addresses are
    left out, because they differ from run to run. Fields of a record that were not sent are shown as `...`.

    >>> short_repr("abc" * 40, limit=12)
    "'abcabcab..."
    >>> short_repr((7, ..., "a")), short_repr({"user": 7, "...key": "a, b", "...": ...})
    ("(7, ..., 'a')", "{'user': 7, ...}")
    """
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  (a user's __repr__ may raise anything)
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    text = " ".join(text.splitlines())
    if not isinstance(value, str | bytes):
        text = _LEFT_OUT.sub("...", _ADDRESS.sub("", text))
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def one_line_name(text: str, longest: int = 80) -> str:
    r"""The name on one line, without characters that cannot be printed.

    >>> one_line_name("parse\nevil = 1")
    'parse evil = 1'
    """
    line = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= longest else line[: longest - 3] + "..."


def require_instance(value: object, kind: type, where: str, wanted: str) -> None:
    """Checks the class of an argument.

    Args:
        value: The argument.
        kind: The class.
        where: The function that was called, for the message.
        wanted: What the function takes, for the message: "a Duration".

    Raises:
        TypeError: The argument is not of this class.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{where} got {value!r}; it takes {wanted}")


def require_at_least(least: int, value: object, where: str) -> None:
    """Checks a number.

    Args:
        least: The least number that is allowed.
        value: The argument.
        where: The function that was called, for the message.

    Raises:
        ValueError: The argument is less, or not an int.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{where} got {value!r}; it takes a number of at least {least}")


class MissingLibraryError(StreamError, ImportError):
    """A library is not installed on this machine (the driver's, or an executor's).

    What to do: Install the extra that the message names, on the driver and on all executors.
    """


def imported(module: str, extra: str, needed_by: str) -> Any:
    """Imports a module of an optional library.

    Args:
        module: The module.
        extra: The extra of this project that installs it.
        needed_by: The feature that needs the library; it begins the error message.

    Raises:
        MissingLibraryError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
            raise  # the library is there, and misses something itself
        raise MissingLibraryError(
            f"{needed_by} needs the library '{error.name}', which is not installed in the Python of this "
            f"machine: pip install 'opchain[{extra}]'"
        ) from error
