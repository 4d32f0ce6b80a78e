from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from forms import job_of

from opchain.runtime.errors import (
    InternalError,
    SparkUnavailableError,
    SpillError,
    TaskFailedError,
)
from opchain.runtime.job.run import CancelledElsewhereError
from opchain.runtime.spark import job_failure
from opchain.runtime.spark.job_failure import failure_of
from opchain.runtime.spark.remote_error import ErrorSeal, ExecutorTracebackError

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.datastream import StreamExecutionEnvironment
    from opchain.runtime.program.vertex_program import JobProgram

ABORTED = (
    "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 8.0 failed 3 "
    "times, most recent failure: Lost task 1.2 in stage 8.0 (TID 4) (10.0.0.7 executor 1): "
)
SEAL = ErrorSeal()
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def job() -> JobProgram:
    return job_of(lambda env: env.from_collection([1]).rebalance().map(str).print(), parallelism=2)


KNOWN: dict[str, tuple[str, type[Exception], str]] = {
    "it was cancelled": (
        "org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 3 cancelled as part of cancellation of all jobs",
        CancelledElsewhereError,
        "Spark's job was cancelled: by Ctrl-C, .*; no output of the job was published",
    ),
    "a worker died": (
        ABORTED + "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).",
        TaskFailedError,
        r"task Map -> Sink: Print to Std. Out \(2/2\), in each of its 3 attempts, lost its Python process",
    ),
    "an executor died": (
        ABORTED + "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
        TaskFailedError,
        r"\(2/2\), in each of its 3 attempts, lost its executor",
    ),
    "the disk is full": (
        ABORTED + "java.io.IOException: No space left on device\n\tat x",
        SpillError,
        r"task Map .* has no disk space.*spark.local.dir",
    ),
    "another Python": (
        ABORTED
        + f"[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.99 than that in "
        f"driver: {HERE}, PySpark cannot run with different minor versions.",
        SparkUnavailableError,
        f"the executors run Python 3.99 and the driver {HERE}",
    ),
    "no Python": (
        ABORTED + 'java.io.IOException: Cannot run program "python3.99": error=2, No such file',
        SparkUnavailableError,
        "the executors have no 'python3.99'",
    ),
    "no opchain": (
        ABORTED + "ModuleNotFoundError: No module named 'opchain.runtime'",
        InternalError,
        "cannot import opchain.runtime",
    ),
    "no reader": (
        "[STREAM_FAILED] Query terminated: Python worker failed to connect back. SQLSTATE: XXKST",
        SparkUnavailableError,
        "did not connect back in time",
    ),
    "the process of a source died": (
        ": Python worker exited unexpectedly (crashed).\n\tat x.UserDefinedPythonDataSource\nCaused by: java.io.EOFException",
        TaskFailedError,
        "Spark lost the Python process on the driver's machine that chooses the input of epochs",
    ),
    "no pyarrow": (
        "[STREAM_FAILED] Query terminated: ModuleNotFoundError: No module named 'pyarrow'",
        SparkUnavailableError,
        "the Python that runs tasks has no pyarrow",
    ),
    "too much collected": (
        "SparkException: Total size of serialized results is bigger than spark.driver.maxResultSize",
        TaskFailedError,
        "raise spark.driver.maxResultSize, or write them with a sink",
    ),
    "anything else": (
        "An error occurred while calling x.\n: java.lang.IllegalStateException: shut down\n\tat a.b",
        TaskFailedError,
        "Spark gave up on the job: java.lang.IllegalStateException: shut down$",
    ),
    "nothing at all": ("", TaskFailedError, "Spark gave up on the job: without a message"),
}


def test_the_root_cause_in_java_is_named(job: JobProgram) -> None:
    spark_error = RuntimeError("[STREAM_FAILED] terminated with exception:")
    vars(spark_error)["_stackTrace"] = (  # as in pyspark's CapturedException
        "x: failed\n\tat a.b\nCaused by: y: c\n\tat c.d\nCaused by: java.io.IOException: reset\n"
    )
    failure = failure_of(spark_error, job, SEAL)
    assert str(failure).endswith("terminated with exception (java.io.IOException: reset)")


@pytest.mark.parametrize(("text", "kind", "message"), KNOWN.values(), ids=KNOWN.keys())
def test_errors_of_spark_become_one_sentence(
    job: JobProgram, text: str, kind: type[Exception], message: str
) -> None:
    spark_error = RuntimeError(text)
    failure = failure_of(spark_error, job, SEAL, [7, 8])
    assert type(failure) is kind
    with pytest.raises(kind, match=message):
        raise failure
    assert isinstance(failure.__cause__, ExecutorTracebackError)
    assert failure.__cause__.spark_error is spark_error


def test_all_tasks_of_a_slot_are_named() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection([1])
        numbers.rebalance().map(str).name("one").print()
        numbers.rebalance().map(str).name("other").print()

    text = f"{ABORTED}Python worker exited unexpectedly"
    failure = failure_of(RuntimeError(text), job_of(draw, parallelism=2), SEAL, [7, 8])
    assert str(failure).startswith(
        "task one -> Sink: Print to Std. Out (2/2) or other -> Sink: Print to Std. Out (2/2), in each of its 3 "
    )


def test_the_error_of_the_user_function_takes_precedence_over_sparks_error(job: JobProgram) -> None:
    text = f"{ABORTED}{SEAL.sealed(KeyError('mine'))}\nPython worker exited unexpectedly"
    failure = failure_of(RuntimeError(text), job, SEAL, [7, 8])
    assert type(failure) is KeyError
    assert failure.args == ("mine",)


def test_a_full_disk_is_named_before_the_worker_that_it_killed(job: JobProgram) -> None:
    text = f"{ABORTED}No space left on device\nPython worker exited unexpectedly"
    assert type(failure_of(RuntimeError(text), job, SEAL, [7, 8])) is SpillError


def test_a_stage_of_another_job_is_not_looked_up(job: JobProgram) -> None:
    text = f"{ABORTED}Python worker exited unexpectedly"
    assert str(failure_of(RuntimeError(text), job, SEAL)).startswith(
        "task 1 of a stage, in each of its 3 attempts, lost its Python process"
    )


def stand_in(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "exit 0",
            "works on this machine and has pyarrow, so most likely the machine was overloaded",
        ),
        (
            "echo \"ModuleNotFoundError: No module named 'pyarrow'\" >&2; exit 1",
            "^the Python that runs tasks has no pyarrow",
        ),
        ("echo broken >&2; exit 1", "fails on this machine: broken"),
        (None, "cannot be run on this machine"),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_the_cause_of_a_worker_that_did_not_start_is_found(
    job: JobProgram,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: str | None,
    message: str,
) -> None:
    """A slow machine was reported as a Python without pyarrow."""
    path = tmp_path / "python"
    python = str(path) if script is None else stand_in(path, script)
    monkeypatch.setattr(job_failure, "_worker_python", lambda: python)
    failure = failure_of(RuntimeError("Python worker failed to connect back."), job, SEAL)
    assert type(failure) is SparkUnavailableError
    with pytest.raises(SparkUnavailableError, match=message):
        raise failure
