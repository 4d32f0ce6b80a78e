from __future__ import annotations

import logging
import signal
import sys
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import pytest
from own_process import run_program

from opchain.runtime.errors import UnsupportedFeatureError, add_note
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.run import CancelledElsewhereError, JobRun, log_warnings_only
from opchain.runtime.shipping.outcome import JobOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator


PATIENCE_S = 60
"""How long a test waits for another thread before it fails."""


class Job:
    """A job that waits until it is released or stopped."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.running = threading.Event()
        self.let_go = threading.Event()
        self.stops = 0
        self.failure = failure

    def run(self) -> JobOutcome:
        self.running.set()
        assert self.let_go.wait(PATIENCE_S)
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


def test_the_status_changes_from_created_to_finished() -> None:
    job = Job()
    run = JobRun(job.run, job.stop)
    assert run.get_job_status().result() is JobStatus.CREATED
    run.start()
    assert job.running.wait(PATIENCE_S)
    assert run.get_job_status().result() is JobStatus.RUNNING
    assert run.get_accumulators().result() == {}
    job.let_go.set()
    result = run.get_job_execution_result().result(PATIENCE_S)
    assert run.get_job_status().result() is JobStatus.FINISHED
    assert result.get_job_id() == run.get_job_id()
    assert list(run.collected("nothing")) == []


def test_a_failed_job_raises_its_error_at_every_call() -> None:
    run = finished(Job(ValueError("no"))).run_here()
    assert run.get_job_status().result() is JobStatus.FAILED
    for ask in (run.get_job_execution_result().result, lambda: run.collected("sink")):
        with pytest.raises(ValueError, match="no"):
            ask()


@pytest.mark.parametrize("failure", [None, CancelledElsewhereError("by another call")])
def test_a_cancelled_job_is_stopped_and_has_the_status_canceled(failure: Exception | None) -> None:
    job = Job(failure)
    run = JobRun(job.run, job.stop).start()
    assert job.running.wait(PATIENCE_S)
    run.cancel().result(PATIENCE_S)
    assert job.stops == 1
    assert run.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(CancelledError, match=f"job {run.get_job_id()} was cancelled"):
        run.get_job_execution_result().result()


def test_cancelling_a_finished_job_changes_nothing() -> None:
    job = Job()
    run = finished(job).run_here()
    run.cancel().result(PATIENCE_S)
    assert job.stops == 0
    assert run.get_job_status().result() is JobStatus.FINISHED


def test_cancelling_in_a_callback_of_the_result_changes_nothing() -> None:
    job = Job()
    run = JobRun(job.run, job.stop)
    run.get_job_execution_result().add_done_callback(lambda _: run.cancel())
    job.let_go.set()
    run.run_here()
    assert run.get_job_status().result() is JobStatus.FINISHED


def test_control_c_stops_the_job_and_is_raised_in_the_program() -> None:
    job = Job(KeyboardInterrupt())
    run = finished(job)
    with pytest.raises(KeyboardInterrupt):
        run.run_here()
    assert job.stops == 1
    assert run.get_job_status().result() is JobStatus.CANCELED


@pytest.fixture
def pythons_own_handler() -> Iterator[None]:
    """Python's default handler of Ctrl-C, since another test may have started Spark with its own handler."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("pythons_own_handler")
def test_control_c_cancels_a_job_that_runs_in_a_thread() -> None:
    job = Job()
    run = JobRun(job.run, job.stop, waits_for_others=True)

    def interrupt() -> None:
        assert job.running.wait(PATIENCE_S)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        run.run_here()
    interrupting.join(PATIENCE_S)
    assert job.stops == 1
    assert run.get_job_status().result() is JobStatus.CANCELED


@pytest.mark.usefixtures("pythons_own_handler")
def test_control_c_during_the_start_cancels_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt must neither be lost while the thread starts nor prevent its start."""
    job = Job()
    run = JobRun(job.run, job.stop, waits_for_others=True)
    start = threading.Thread.start

    def interrupted_start(thread: threading.Thread) -> None:
        signal.raise_signal(signal.SIGINT)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", interrupted_start)
    with pytest.raises(KeyboardInterrupt):
        run.run_here()
    assert job.stops == 1
    assert run.get_job_status().result() is JobStatus.CANCELED


def test_a_job_that_was_cancelled_elsewhere_has_not_failed() -> None:
    run = finished(Job(CancelledElsewhereError("on a page"))).run_here()
    assert run.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(CancelledElsewhereError, match="on a page"):
        run.get_job_execution_result().result()


@pytest.mark.parametrize("waits_for_others", [False, True])
def test_a_job_that_waits_for_other_processes_runs_in_its_own_thread(
    waits_for_others: bool,
) -> None:
    threads: list[threading.Thread] = []

    def run() -> JobOutcome:
        threads.append(threading.current_thread())
        return JobOutcome()

    JobRun(run, lambda: None, waits_for_others=waits_for_others).run_here()
    assert (threads == [threading.main_thread()]) is not waits_for_others


def test_a_system_exit_is_raised_in_the_program() -> None:
    run = finished(Job(SystemExit(1)))
    with pytest.raises(SystemExit):
        run.run_here()
    assert run.get_job_status().result() is JobStatus.FAILED


@pytest.mark.parametrize("method", ["trigger_savepoint", "stop_with_savepoint"])
def test_a_bounded_job_refuses_savepoints(method: str) -> None:
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


def test_python_3_10_does_not_change_errors_with_other_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


UNAWAITED = """
from opchain import Configuration, StreamExecutionEnvironment
from opchain.common import WatermarkStrategy
from opchain.runtime.functions.source import Source

class Endless(Source):
    def splits(self, parallelism):
        return [[0]]

    def read(self, split, batch_size):
        while True:
            yield [1]

configuration = Configuration()
configuration.set_string("execution.target", "local")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
stream = env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "ones")
stream.filter(lambda one: one > 1).print()
client = env.execute_async("ones")
"""


@pytest.mark.parametrize(
    ("more", "is_warned"),
    [("", True), ("client.cancel().result()", False), ("client.get_job_execution_result()", False)],
)
def test_a_program_that_ends_before_its_job_gets_a_warning(more: str, *, is_warned: bool) -> None:
    done = run_program("-c", UNAWAITED + more)
    assert done.exit_code == 0
    assert ("job 'ones' was still running when the program ended" in done.err) is is_warned
