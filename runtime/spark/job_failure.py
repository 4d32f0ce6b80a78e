"""What the driver raises when Spark gives up on a job: the user's exception, or one sentence."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from opchain.runtime.errors import (
    InternalError,
    SparkUnavailableError,
    SpillError,
    TaskFailedError,
)
from opchain.runtime.spark.remote_error import (
    ExecutorTracebackError,
    revived,
    without_token,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.spark.remote_error import ErrorSeal

_STAGE_FAILURE = re.compile(r"Task (\d+) in stage (\d+)\.\d+ failed (\d+) times?")
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH.*?(\d+\.\d+).*?(\d+\.\d+)", re.DOTALL)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_MISSING_OWN = re.compile(r"No module named '(opchain[\w.]*|cloudpickle[\w.]*)'")
_MISSING_ARROW = "No module named 'pyarrow'"
_WITHOUT_ARROW = (
    "the Python that runs tasks has no pyarrow, which rows of DataFrames and all input of unbounded jobs "
    "need: install it on the executors and on the driver's machine for the Python that PYSPARK_PYTHON, "
    "spark.pyspark.python or env.set_python_executable() names"
)


def failure_of(
    spark_error: BaseException,
    job: JobProgram,
    seal: ErrorSeal,
    stage_ids: Sequence[int] = (),
) -> BaseException:
    """What to raise instead of Spark's error.

    Args:
        spark_error: What pyspark or py4j raised.
        job: The job.
        seal: The job's seal; tasks sign their exceptions with it.
        stage_ids: Spark's ids of the job's stages, in order; they tell which task is meant.
    """
    text = str(spark_error)
    parts = seal.unsealed(text)
    if parts is not None:
        return revived(parts, spark_error)
    task = _task_in(text, job, stage_ids)
    failure = next(
        (found for say in _KNOWN if (found := say(text, task)) is not None),
        TaskFailedError(f"Spark gave up on the job: {_first_line(text)}"),
    )
    failure.__cause__ = ExecutorTracebackError(without_token(text), spark_error)
    return failure


def _task_in(text: str, job: JobProgram, stage_ids: Sequence[int]) -> str:
    """The task that Spark means, and how often it tried, as the subject of a sentence."""
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
    """The line that says most: py4j begins with the name of the method that it called."""
    lines = [line.strip(" :") for line in text.splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1]
    return lines[0] if lines else "without a word"


def _other_python(text: str, task: str) -> BaseException | None:  # noqa: ARG001 - one signature for all
    found = _VERSIONS.search(text)
    if found is None:
        return None
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    there = next((version for version in found.groups() if version != here), "another version")
    return SparkUnavailableError(
        f"the executors run Python {there} and the driver {here}, and functions travel between equal minor "
        f"versions alone: let PYSPARK_PYTHON, spark.pyspark.python or env.set_python_executable() name a "
        f"Python {here} on the executors"
    )


def _no_python(text: str, task: str) -> BaseException | None:  # noqa: ARG001
    found = _NO_PROGRAM.search(text)
    if found is None:
        return None
    return SparkUnavailableError(
        f"the executors have no '{found[1]}' to run Python with: let PYSPARK_PYTHON, spark.pyspark.python "
        "or env.set_python_executable() name the Python there"
    )


def _no_opchain(text: str, task: str) -> BaseException | None:
    found = _MISSING_OWN.search(text)
    if found is None:
        return None
    return InternalError(
        f"{task} cannot import {found[1]}, which should have travelled with the job"
    )


def _no_pyarrow(text: str, task: str) -> BaseException | None:  # noqa: ARG001
    return SparkUnavailableError(_WITHOUT_ARROW) if _MISSING_ARROW in text else None


def _no_reader(text: str, task: str) -> BaseException | None:  # noqa: ARG001
    """Spark does not hand on what the process has printed before it ended."""
    if "Python worker failed to connect back" not in text:
        return None
    return SparkUnavailableError(
        "a Python process that Spark started did not come up, and has printed the reason to the standard error "
        f"of the driver or the executor. Most often {_WITHOUT_ARROW}"
    )


def _worker_died(text: str, task: str) -> BaseException | None:
    if "Python worker exited unexpectedly" not in text:
        return None
    return TaskFailedError(
        f"{task} lost its Python process: killed, maybe for want of memory, crashed in a native library, "
        "or ended by os._exit(); nothing of the job was published"
    )


def _executor_died(text: str, task: str) -> BaseException | None:
    if "ExecutorLostFailure" not in text and "executor heartbeat timed out" not in text.lower():
        return None
    return TaskFailedError(
        f"{task} lost its executor, which was killed or lost its connection; nothing of the job was "
        "published"
    )


def _disk_full(text: str, task: str) -> BaseException | None:
    if "No space left on device" not in text and "Disk quota exceeded" not in text:
        return None
    return SpillError(
        f"{task} found no room on a local disk for the shuffle: free some, or let spark.local.dir or "
        "SPARK_LOCAL_DIRS name another disk; nothing of the job was published"
    )


def _too_much_collected(text: str, task: str) -> BaseException | None:  # noqa: ARG001
    if "spark.driver.maxResultSize" not in text:
        return None
    return TaskFailedError(
        "the collected and printed records are more than the driver takes: raise "
        "spark.driver.maxResultSize, or write them with a sink"
    )


_KNOWN: tuple[Callable[[str, str], BaseException | None], ...] = (
    _other_python,
    _no_python,
    _no_opchain,
    _no_pyarrow,
    _no_reader,
    _disk_full,
    _too_much_collected,
    _worker_died,
    _executor_died,
)
"""Asked in order; a full disk may kill workers, so the causes come before their effects."""
