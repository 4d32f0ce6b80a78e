"""The error that the driver raises when a Spark job fails: the user's exception, or an explanation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import (
    InternalError,
    SparkUnavailableError,
    SpillError,
    TaskFailedError,
)
from opchain.runtime.job.run import CancelledElsewhereError
from opchain.runtime.spark.remote_error import (
    ErrorSeal,
    ExecutorTracebackError,
    original_exception,
    without_token,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark import SparkContext

    from opchain.runtime.program.vertex_program import JobProgram

_STAGE_FAILURE = re.compile(r"Task (\d+) in stage (\d+)\.\d+ failed (\d+) times?")
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH.*?(\d+\.\d+).*?(\d+\.\d+)", re.DOTALL)
_CANCELLED = "[SPARK_JOB_CANCELLED]"
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_MISSING_OWN = re.compile(r"No module named '(opchain[\w.]*|cloudpickle[\w.]*)'")
_CAUSED_BY = "Caused by: "
_IN_SOURCE_PROCESS = re.compile(r"PythonStreamingSourceRunner|UserDefinedPythonDataSource")
_CONNECTION_LOST = re.compile(r"EOFException|SocketException|ClosedChannelException")
_ASKING_S = 60
_MISSING_ARROW = "No module named 'pyarrow'"
_WITHOUT_ARROW = (
    "the Python that runs tasks has no pyarrow, which rows of DataFrames and all input of unbounded jobs "
    "need: install it on the executors and on the driver's machine for the Python that PYSPARK_PYTHON, "
    "spark.pyspark.python or env.set_python_executable() names"
)


@dataclass(frozen=True, slots=True)
class _SparkError:
    """Spark's error.

    Attributes:
        text: Its message and Java's stack trace.
        task: The failed task, as the subject of a sentence.
        unpublished: "job" or "epoch", whose output was not published.
    """

    text: str
    task: str
    unpublished: str


def failure_of(
    spark_error: BaseException,
    job: JobProgram,
    seal: ErrorSeal,
    stage_ids: Sequence[int] = (),
    unpublished: str = "job",
) -> BaseException:
    """The error to raise instead of Spark's error.

    Args:
        spark_error: The error of pyspark or py4j.
        job: The job.
        seal: The job's seal, with which tasks sign their exceptions.
        stage_ids: Spark's ids of the job's stages, in order, by which the failed task is found.
        unpublished: "job", or "epoch" in an unbounded job: its output was not published.
    """
    text = str(spark_error)
    parts = seal.unsealed(text)
    if parts is not None:
        return original_exception(parts, spark_error)
    stack: str = getattr(spark_error, "_stackTrace", None) or ""
    found = _SparkError(f"{text}\n{stack}", _task_in(text, job, stage_ids), unpublished)
    failure = next(
        (known for say in _KNOWN if (known := say(found)) is not None),
        TaskFailedError(f"Spark gave up on the job: {_first_line(text)}{_root_cause(stack)}"),
    )
    failure.__cause__ = ExecutorTracebackError(without_token(text), spark_error)
    return failure


@contextmanager
def explaining_a_lost_jvm(context: SparkContext, job_name: str, resume_text: str) -> Iterator[None]:
    """If Spark's JVM ends within the block, the error says so.

    Otherwise each call would fail with another network error.

    Args:
        context: The context of the JVM.
        job_name: The job.
        resume_text: Where the program then resumes, as the end of the message; may be empty.

    Raises:
        TaskFailedError: The JVM has ended.
    """
    try:
        yield
    except Exception as error:
        if not _is_connection_error(error) or _answers(context):
            raise
        raise TaskFailedError(
            f"job '{job_name}' lost Spark's JVM, the Java process that the driver talks to: it was killed, perhaps "
            "for lack of memory (spark.driver.memory), or crashed, and its own messages say more. "
            f"Start the program again in a new process{resume_text}"
        ) from error


def _is_connection_error(error: BaseException) -> bool:
    """Whether an error, or one of its causes, is a lost connection."""
    from py4j.protocol import Py4JNetworkError  # noqa: PLC0415 - comes with pyspark

    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        if isinstance(found, (Py4JNetworkError, ConnectionError, EOFError)):
            return True
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return False


def _answers(context: SparkContext) -> bool:
    """Whether the JVM answers a call."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - as above

    try:
        jvm: Any = context._jvm  # noqa: SLF001 - as in pyspark itself
        jvm.System.currentTimeMillis()
    except (OSError, Py4JError):
        return False
    return True


def _task_in(text: str, job: JobProgram, stage_ids: Sequence[int]) -> str:
    """The failed task and its number of attempts, as the subject of a sentence."""
    found = _STAGE_FAILURE.search(text)
    if found is None:
        return "a task"
    partition, stage, attempts = map(int, found.groups())
    times = "at its only attempt" if attempts == 1 else f"in each of its {attempts} attempts"
    if stage not in stage_ids:
        return f"task {partition} of a stage, {times},"
    program = job.stages[sorted(stage_ids).index(stage)]
    named = [job.vertex_of(task) for task in program.slots[partition]]
    tasks = (f"{vertex.name} ({subtask + 1}/{vertex.parallelism})" for vertex, subtask in named)
    return f"task {' or '.join(tasks)}, {times},"


def _first_line(text: str) -> str:
    """The first line of the message. Of a message of py4j the second one, since the first one names a method."""
    lines = [line.strip(" :") for line in text.splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1]
    return lines[0] if lines else "without a message"


def _root_cause(stack: str) -> str:
    """The last cause in Java's stack trace, in brackets: Spark's message may lack it."""
    causes = [line for line in stack.splitlines() if line.startswith(_CAUSED_BY)]
    return f" ({causes[-1].removeprefix(_CAUSED_BY)})" if causes else ""


def _cancelled(error: _SparkError) -> BaseException | None:
    if _CANCELLED not in error.text:
        return None
    return CancelledElsewhereError(
        "Spark's job was cancelled: by Ctrl-C, on Spark's web page or by another call; no output of the "
        f"{error.unpublished} was published"
    )


def _other_python(error: _SparkError) -> BaseException | None:
    found = _VERSIONS.search(error.text)
    if found is None:
        return None
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    there = next((version for version in found.groups() if version != here), "another version")
    return SparkUnavailableError(
        f"the executors run Python {there} and the driver {here}, but functions can only be sent "
        f"between equal minor versions: set PYSPARK_PYTHON, spark.pyspark.python or "
        f"env.set_python_executable() to a Python {here} on the executors"
    )


def _no_python(error: _SparkError) -> BaseException | None:
    found = _NO_PROGRAM.search(error.text)
    if found is None:
        return None
    return SparkUnavailableError(
        f"the executors have no '{found[1]}' to run Python: set PYSPARK_PYTHON, "
        f"spark.pyspark.python or env.set_python_executable() to the Python of the executors"
    )


def _no_opchain(error: _SparkError) -> BaseException | None:
    found = _MISSING_OWN.search(error.text)
    if found is None:
        return None
    return InternalError(
        f"{error.task} cannot import {found[1]}, which should have been sent with the job"
    )


def _no_pyarrow(error: _SparkError) -> BaseException | None:
    return SparkUnavailableError(_WITHOUT_ARROW) if _MISSING_ARROW in error.text else None


def _no_reader(error: _SparkError) -> BaseException | None:
    """Spark does not forward the output of a process that ended early. So the interpreter is tried here."""
    if "Python worker failed to connect back" not in error.text:
        return None
    python = _worker_python()
    try:
        asked = subprocess.run(  # noqa: S603 - the interpreter that Spark runs
            [python, "-c", "import pyarrow, pyspark"],
            capture_output=True,
            check=False,
            timeout=_ASKING_S,
        )
    except subprocess.TimeoutExpired:
        found = f"{python} did not import pyspark and pyarrow within {_ASKING_S} s on this machine"
    except OSError as refusal:
        return SparkUnavailableError(
            f"{python}, the Python that Spark starts, cannot be run on this machine ({refusal.strerror}): set "
            "PYSPARK_PYTHON, spark.pyspark.python or env.set_python_executable() to another one"
        )
    else:
        if asked.returncode and _MISSING_ARROW.encode() in asked.stderr:
            return SparkUnavailableError(_WITHOUT_ARROW)
        if asked.returncode:
            lines = asked.stderr.decode("utf-8", "replace").strip().splitlines()
            found = f"{python} fails on this machine: {lines[-1] if lines else asked.returncode}"
        else:
            found = f"{python} works on this machine and has pyarrow, so most likely the machine was overloaded"
    return SparkUnavailableError(
        "a Python process that Spark started did not connect back in time, for which Spark allows 10 s. "
        f"{found}. Its own messages are on the standard error of the driver or the executor; start the job "
        "again, with fewer tasks at once if this happens again"
    )


def _worker_python() -> str:
    """The interpreter of the active context's tasks."""
    from pyspark import SparkContext  # noqa: PLC0415 - it may be missing

    context = SparkContext._active_spark_context  # noqa: SLF001 - there is no public question
    return (
        os.environ.get("PYSPARK_PYTHON", sys.executable) if context is None else context.pythonExec
    )


def _worker_died(error: _SparkError) -> BaseException | None:
    if "Python worker exited unexpectedly" not in error.text:
        return None
    return TaskFailedError(
        f"{error.task} lost its Python process: it was killed (out of memory?), crashed in a native "
        f"library, or called os._exit(); no output of the {error.unpublished} was published"
    )


def _source_process_died(error: _SparkError) -> BaseException | None:
    if not (_IN_SOURCE_PROCESS.search(error.text) and _CONNECTION_LOST.search(error.text)):
        return None
    return TaskFailedError(
        "Spark lost the Python process on the driver's machine that chooses the input of epochs: it was killed "
        "(out of memory?) or crashed. Start the program again, or let restart-strategy.type do it"
    )


def _executor_died(error: _SparkError) -> BaseException | None:
    if (
        "ExecutorLostFailure" not in error.text
        and "executor heartbeat timed out" not in error.text.lower()
    ):
        return None
    return TaskFailedError(
        f"{error.task} lost its executor, which was killed or lost its connection; no output of the "
        f"{error.unpublished} was published"
    )


def _disk_full(error: _SparkError) -> BaseException | None:
    if "No space left on device" not in error.text and "Disk quota exceeded" not in error.text:
        return None
    return SpillError(
        f"{error.task} has no disk space for the shuffle: free some, or set spark.local.dir or "
        f"SPARK_LOCAL_DIRS to another disk; no output of the {error.unpublished} was published"
    )


def _too_much_collected(error: _SparkError) -> BaseException | None:
    if "spark.driver.maxResultSize" not in error.text:
        return None
    return TaskFailedError(
        "the collected and printed records exceed the limit of the driver: raise "
        "spark.driver.maxResultSize, or write them with a sink"
    )


_KNOWN: tuple[Callable[[_SparkError], BaseException | None], ...] = (
    _cancelled,
    _other_python,
    _no_python,
    _no_opchain,
    _no_pyarrow,
    _no_reader,
    _disk_full,
    _too_much_collected,
    _source_process_died,
    _worker_died,
    _executor_died,
)
"""Tried in order. Causes come before their effects: a full disk may kill workers."""
