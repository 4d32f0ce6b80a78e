"""What is said and done on Ctrl-C; tests/spark/test_interrupted_run.py does it to real processes."""

from __future__ import annotations

from typing import Any, cast

import pytest
from opchain.compiler.commands.interrupt import INTERRUPTED, ends_on_interrupt
from opchain.compiler.dsl.interception import StartedJob
from opchain.runtime.job.completable_future import CompletableFuture
from opchain.runtime.job.status import JobStatus


class Client:
    """A job that is cancelled at once."""

    def __init__(self, status: JobStatus) -> None:
        self.status = status

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self.status)

    def cancel(self) -> None:
        assert self.status is JobStatus.RUNNING
        self.status = JobStatus.CANCELLING


def job(name: str, status: JobStatus) -> StartedJob:
    return StartedJob(name, cast("Any", Client(status)), cast("Any", None))


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([], "opchain: interrupted"),
        ([job("done", JobStatus.FINISHED)], "opchain: interrupted"),
        (
            [job("done", JobStatus.FINISHED), job("waited for", JobStatus.CANCELED)],
            "opchain: interrupted; cancelled: 'waited for'",
        ),
        (
            [job("behind", JobStatus.RUNNING), job("waited for", JobStatus.CANCELED)],
            "opchain: interrupted; cancelled: 'behind', 'waited for'",
        ),
    ],
)
def test_jobs_that_run_are_cancelled_and_named(
    capsys: Any, jobs: list[StartedJob], message: str
) -> None:
    with pytest.raises(SystemExit) as ended, ends_on_interrupt(jobs):
        raise KeyboardInterrupt
    assert ended.value.code == INTERRUPTED == 130
    assert capsys.readouterr().err == f"{message}\n"


def test_other_ends_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), ends_on_interrupt([]):
        raise ZeroDivisionError
    with ends_on_interrupt([]):
        pass
