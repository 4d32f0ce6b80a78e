from __future__ import annotations

import logging
import signal
import sys
import threading
from concurrent.futures import CancelledError
from typing import Any

import pytest
from opchain.runtime.errors import UnsupportedFeatureError, add_note
from opchain.runtime.job.outcome import JobOutcome
from opchain.runtime.job.run import JobRun, log_warnings_only
from opchain.runtime.job.status import JobStatus


class Job:
    """A job that waits until it is let go or stopped."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.running = threading.Event()
        self.let_go = threading.Event()
        self.stops = 0
        self.failure = failure

    def run(self) -> JobOutcome:
        self.running.set()
        assert self.let_go.wait(10)
        if self.failure is not None:
            raise self.failure
        if self.stops:
            raise RuntimeError("stopped")
        return JobOutcome()

    def stop(self) -> None:
        self.stops += 1
        self.let_go.set()


def finished(job: Job) -> JobRun:
    job.let_go.set()
    return JobRun(job.run, job.stop)


def test_a_job_runs_from_created_to_finished() -> None:
    job = Job()
    run = JobRun(job.run, job.stop)
    assert run.get_job_status().result() is JobStatus.CREATED
    run.start()
    assert job.running.wait(10)
    assert run.get_job_status().result() is JobStatus.RUNNING
    assert run.get_accumulators().result() == {}
    job.let_go.set()
    result = run.get_job_execution_result().result(10)
    assert run.get_job_status().result() is JobStatus.FINISHED
    assert result.get_job_id() == run.get_job_id()
    assert list(run.collected("nothing")) == []


def test_a_failed_job_raises_what_it_failed_with_every_time() -> None:
    run = finished(Job(ValueError("no"))).run_here()
    assert run.get_job_status().result() is JobStatus.FAILED
    for ask in (run.get_job_execution_result().result, lambda: run.collected("sink")):
        with pytest.raises(ValueError, match="no"):
            ask()


def test_a_cancelled_job_is_stopped_and_cancelled_not_failed() -> None:
    job = Job()
    run = JobRun(job.run, job.stop).start()
    assert job.running.wait(10)
    run.cancel().result(10)
    assert job.stops == 1
    assert run.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(CancelledError):
        run.get_job_execution_result().result()


def test_cancelling_a_finished_job_changes_nothing() -> None:
    job = Job()
    run = finished(job).run_here()
    run.cancel().result(10)
    assert job.stops == 0
    assert run.get_job_status().result() is JobStatus.FINISHED


def test_control_c_stops_the_job_and_goes_on_to_the_program() -> None:
    job = Job(KeyboardInterrupt())
    run = finished(job)
    with pytest.raises(KeyboardInterrupt):
        run.run_here()
    assert job.stops == 1
    assert run.get_job_status().result() is JobStatus.CANCELED


def test_control_c_while_the_job_waits_for_others_cancels_it() -> None:
    job = Job()
    run = JobRun(job.run, job.stop, waits_for_others=True)

    def interrupt() -> None:
        assert job.running.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run.run_here()
    assert job.stops == 1
    assert run.get_job_status().result() is JobStatus.CANCELED


@pytest.mark.parametrize("waits_for_others", [False, True])
def test_a_job_that_waits_for_others_runs_in_a_thread_of_its_own(waits_for_others: bool) -> None:
    threads: list[threading.Thread] = []

    def run() -> JobOutcome:
        threads.append(threading.current_thread())
        return JobOutcome()

    JobRun(run, lambda: None, waits_for_others=waits_for_others).run_here()
    assert (threads == [threading.main_thread()]) is not waits_for_others


def test_an_exit_goes_on_to_the_program() -> None:
    run = finished(Job(SystemExit(1)))
    with pytest.raises(SystemExit):
        run.run_here()
    assert run.get_job_status().result() is JobStatus.FAILED


@pytest.mark.parametrize("method", ["trigger_savepoint", "stop_with_savepoint"])
def test_a_bounded_job_has_no_savepoints(method: str) -> None:
    arguments: list[Any] = [True] if method == "stop_with_savepoint" else []
    with pytest.raises(UnsupportedFeatureError, match=method):
        getattr(finished(Job()), method)(*arguments)


@pytest.mark.parametrize("version", [(3, 10), (3, 11)])
def test_python_3_10_shows_notes_in_the_message(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]
) -> None:
    error = ValueError("no")
    add_note(error, "in 'map'")
    monkeypatch.setattr(sys, "version_info", version)
    run = finished(Job(error)).run_here()
    expected = "no\nin 'map'" if version == (3, 10) else "no"
    with pytest.raises(ValueError, match="no") as caught:
        run.get_job_execution_result().result()
    assert str(caught.value) == expected


def test_python_3_10_leaves_other_arguments_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(28, "No space left on device")
    add_note(error, "in 'map'")
    monkeypatch.setattr(sys, "version_info", (3, 10))
    run = finished(Job(error)).run_here()
    with pytest.raises(OSError, match="No space") as caught:
        run.get_job_execution_result().result()
    assert caught.value.errno == 28


@pytest.mark.parametrize(
    ("before", "after"),
    [(logging.NOTSET, logging.WARNING), (logging.INFO, logging.INFO)],
)
def test_jobs_log_warnings_only_unless_the_logger_was_configured(before: int, after: int) -> None:
    logger = logging.getLogger("opchain")
    found = logger.level
    try:
        logger.setLevel(before)
        log_warnings_only()
        assert logger.level == after
    finally:
        logger.setLevel(found)
