"""The effect of Ctrl-C on running jobs. tests/spark/test_interrupted_run.py sends it to real processes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from opchain.compiler.commands.run import INTERRUPTED, ends_on_interrupt
from opchain.compiler.interception import StartedJob
from opchain.runtime.job.client import CompletableFuture, JobStatus
from opchain.runtime.job.run import JobRun

if TYPE_CHECKING:
    from opchain.runtime.shipping.outcome import JobOutcome


class Client:
    """A job that is cancelled at once."""

    def __init__(self, status: JobStatus) -> None:
        self.status = status

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self.status)

    def end_on_interrupt(self) -> None:
        assert self.status is JobStatus.RUNNING
        self.status = JobStatus.CANCELLING

    def resume_hint(self) -> None:
        return None


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
def test_ctrl_c_cancels_running_jobs_and_names_them(
    capsys: Any, jobs: list[StartedJob], message: str
) -> None:
    with pytest.raises(SystemExit) as ended, ends_on_interrupt(jobs):
        raise KeyboardInterrupt
    assert ended.value.code == INTERRUPTED == 130
    assert capsys.readouterr().err == f"{message}\n"


def test_ends_on_interrupt_lets_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), ends_on_interrupt([]):
        raise ZeroDivisionError
    with ends_on_interrupt([]):
        pass


class EndsWithCheckpoint(JobRun):
    """A job that runs until it is stopped, and leaves something behind."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        super().__init__(self._wait, self.let_go.set)

    def _wait(self) -> JobOutcome:
        assert self.let_go.wait(60)
        raise RuntimeError("stopped")

    def resume_hint(self) -> str:
        return "started again, it resumes from chk-3"


def test_ctrl_c_prints_the_checkpoint_from_which_a_job_can_resume(capsys: Any) -> None:
    run = EndsWithCheckpoint()
    run.start()
    jobs = [StartedJob("visits", run, cast("Any", None))]
    with pytest.raises(SystemExit) as ended, ends_on_interrupt(jobs):
        raise KeyboardInterrupt
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err.splitlines() == [
        "opchain: interrupted; cancelled: 'visits'",
        "opchain: job 'visits': started again, it resumes from chk-3",
    ]


def test_a_second_ctrl_c_stops_waiting_for_jobs(capsys: Any) -> None:
    class Impatient(EndsWithCheckpoint):
        def end_on_interrupt(self) -> None:
            self.cancel()
            raise KeyboardInterrupt

    with (
        pytest.raises(SystemExit) as ended,
        ends_on_interrupt([StartedJob("visits", Impatient().start(), cast("Any", None))]),
    ):
        raise KeyboardInterrupt
    assert ended.value.code == INTERRUPTED
    assert "cancelled: 'visits'" in capsys.readouterr().err
