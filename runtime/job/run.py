"""A job that runs on a thread of the driver, the client that watches it, and the records of its collecting sinks."""

from __future__ import annotations

import atexit
import logging
import queue
import signal
import threading
import time
import uuid
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from opchain.runtime.errors import UnsupportedFeatureError, shorten_notebook_tracebacks, show_notes
from opchain.runtime.job.client import (
    CompletableFuture,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
)
from opchain.runtime.measurements.job_metrics import metrics_so_far

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType, TracebackType

    from typing_extensions import Self

    from opchain.runtime.epochs.epoch_progress import EpochHistory, EpochProgress
    from opchain.runtime.job.progress import JobProgress
    from opchain.runtime.job.restarts import Restarts
    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.shipping.outcome import JobOutcome


MOST_WAITING = 16
"""The most lists of records (one per epoch or batch) that wait for a reader. With more, the job waits."""

NO_LIMIT = 0
"""Any number of lists may wait."""

_LOOK_EVERY_S = 0.1
"""How often the waiting thread checks for Ctrl-C and the end of the job, in seconds."""


_started: WeakSet[JobRun] = WeakSet()


@atexit.register
def _warn_of_running_jobs() -> None:
    """Names the jobs that end because the program ends, and that the program has not awaited."""
    for run in list(_started):
        if not (run.is_awaited or run._ended.is_set()):  # noqa: SLF001 - its own part
            _LOG.warning(
                "job '%s' was still running when the program ended, and was aborted: wait for it with "
                "get_job_execution_result().result(), or start the program with 'opchain run'",
                run._name,  # noqa: SLF001
            )


class CollectedRecords:
    """Records of collecting sinks, until the program reads them. `most_waiting` limits the waiting lists per sink."""

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self._waiting: dict[str, queue.Queue[list[Any]]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def put(self, uid: str, records: list[Any]) -> None:
        """Adds records of a sink. If too many are unread, waits until they are read or the job ends."""
        waiting = self._of(uid)
        while not self._ended.is_set():
            try:
                waiting.put(records, timeout=_LOOK_EVERY_S)
            except queue.Full:
                continue
            break

    def end(self) -> None:
        """Ends the records of all sinks."""
        self._ended.set()

    def read(self, uid: str) -> Iterator[Any]:
        """Yields the records of a sink as they arrive, until the job has ended."""
        waiting = self._of(uid)
        while True:
            has_ended = self._ended.is_set()
            try:
                records = waiting.get(timeout=_LOOK_EVERY_S)
            except queue.Empty:
                if has_ended:
                    return
                continue
            yield from records

    def _of(self, uid: str) -> queue.Queue[list[Any]]:
        with self._lock:
            return self._waiting.setdefault(uid, queue.Queue(self._most_waiting))


class HeldInterrupts:
    """Delays the exceptions of SIGINT's handler within the block. The handler itself is called at once.

    This has an effect only in the main thread, where Python runs handlers, and only if there is a handler.
    """

    def __init__(self) -> None:
        self._previous: Any = None
        self._held: list[BaseException] = []

    def __enter__(self) -> Self:
        """Replaces the handler."""
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if callable(previous):
                self._previous = previous
                signal.signal(signal.SIGINT, self._hold)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Restores the handler. Raises its delayed exception, unless another exception is already raised."""
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if error is None:
            self._raise_held()

    def wait(self, event: threading.Event, longest_s: float | None = None) -> None:
        """Waits for an event.

        Args:
            event: The event.
            longest_s: The longest time to wait, in seconds; None waits forever.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed. Another handler may raise another exception.
        """
        end = None if longest_s is None else time.monotonic() + longest_s
        while not event.is_set():
            self._raise_held()
            left = _LOOK_EVERY_S if end is None else min(_LOOK_EVERY_S, end - time.monotonic())
            if left <= 0:
                return
            event.wait(left)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        try:
            self._previous(number, frame)
        except BaseException as error:  # noqa: BLE001 - raised where it is looked for
            self._held.append(error)

    def _raise_held(self) -> None:
        if self._held:
            raise self._held.pop(0)


_LOG = logging.getLogger("opchain.job")

_LIBRARY = logging.getLogger("opchain")

CANCELLING_S = 30
"""How long Ctrl-C waits for the job's end before the program continues."""


def log_warnings_only() -> None:
    """Makes opchain log only warnings and errors, unless its logger was configured.

    PyFlink programs often configure INFO logging to standard output, where opchain's messages would mix with their
    results.
    """
    if _LIBRARY.level == logging.NOTSET:
        _LIBRARY.setLevel(logging.WARNING)


class CancelledElsewhereError(CancelledError):
    """The job was cancelled, but not by its client: on Spark's web page, or by pyspark's handler of Ctrl-C."""


class JobRun(JobClient):
    """The run of a job, from start to end.

    Args:
        run: Runs the job in the calling thread, and returns its outcome.
        stop: Makes `run` raise soon. It is called from another thread.
        waits_for_others: `run` mostly waits for another process, and Ctrl-C in the waiting thread would break the
            connection.
        name: The job's name, for the log.
        progress: Reports the job's progress, if available.
        history: The epochs of an unbounded job that runs in epochs.
        restarts: The restarts of the job, for its status.
        records: The records of the collecting sinks of an unbounded job while it runs.

    Attributes:
        at_start: Called in the job's thread before the job begins.
        at_end: Called with the last status and the error, before the futures of the job are completed.
        last_status: How the job ended; None before.
        last_metrics: The metrics of the finished job; None before.
    """

    def __init__(
        self,
        run: Callable[[], JobOutcome],
        stop: Callable[[], None],
        *,
        waits_for_others: bool = False,
        name: str = "",
        progress: JobProgress | None = None,
        history: EpochHistory | None = None,
        restarts: Restarts | None = None,
        records: CollectedRecords | None = None,
    ) -> None:
        log_warnings_only()
        self.progress = progress
        self.history = history
        self.restarts = restarts
        self._records = records
        self._name = name
        self._run = run
        self._stop = stop
        self._waits_for_others = waits_for_others
        self._id = JobID(uuid.uuid4().hex)
        self._status = JobStatus.CREATED
        self._outcome: CompletableFuture[JobOutcome] = CompletableFuture()
        self._result: CompletableFuture[JobExecutionResult] = CompletableFuture()
        self._is_cancelled = threading.Event()
        self._ended = threading.Event()
        self.at_start: list[Callable[[], object]] = []
        self.at_end: list[Callable[[JobStatus, BaseException | None], object]] = []
        self.last_status: JobStatus | None = None
        self._transition = threading.Lock()
        self.last_metrics: JobMetrics | None = None
        self.is_awaited = False  # whether the program has asked for the result

    def start(self) -> JobRun:
        """Runs the job in its own thread."""
        _started.add(self)
        threading.Thread(target=self._run_to_the_end, name=f"job {self._id}", daemon=True).start()
        return self

    def run_here(self) -> JobRun:
        """Runs the job to its end. Ctrl-C cancels it.

        Tasks of this process run in the calling thread, so that a debugger stops in them.

        Raises:
            KeyboardInterrupt: Ctrl-C cancelled the job.
        """
        if not self._waits_for_others:
            self._run_to_the_end()
            return self
        try:
            with HeldInterrupts() as interrupts:
                self.start()
                interrupts.wait(self._ended)
        except KeyboardInterrupt:
            self.end_on_interrupt()
            raise
        return self

    def end_on_interrupt(self) -> None:
        """Handles Ctrl-C: cancels the job, and waits for its end.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed again. The job still ends if the process stays alive.
        """
        with HeldInterrupts() as interrupts:
            self.cancel()
            interrupts.wait(self._ended, CANCELLING_S)

    @property
    def begins_with(self) -> str | None:
        """The start of the job, such as "restored chk-12, parallelism 2 -> 4"; None if it is not known."""
        return None

    @property
    def has_begun(self) -> bool:
        """Whether the job has begun to process records, or may have: a job with epochs first restores its state."""
        return self.history is None or self.begins_with is not None

    def resume_hint(self) -> str | None:
        """How to resume a job that was stopped; None if it cannot be resumed."""
        return None

    def _run_to_the_end(self) -> None:
        self._status = JobStatus.RUNNING
        _LOG.info("job '%s' is running", self._name)
        for call in self.at_start:
            call()
        started = time.monotonic()
        try:
            outcome = self._run()
        except KeyboardInterrupt as error:
            self._stop()
            self._fail(JobStatus.CANCELED, error)
            raise
        except BaseException as error:
            if self._is_cancelled.is_set():
                cancelled = CancelledError(f"job {self._id} was cancelled")
                self._fail(JobStatus.CANCELED, cancelled)
            elif isinstance(error, CancelledElsewhereError):
                self._fail(JobStatus.CANCELED, error)
            else:
                show_notes(error)
                shorten_notebook_tracebacks(error)
                self._fail(JobStatus.FAILED, error)
            if isinstance(error, SystemExit):
                raise
        else:
            self.last_metrics = outcome.metrics
            self._notify_end(JobStatus.FINISHED, None)
            self._status = JobStatus.FINISHED
            self._outcome.set_result(outcome)
            runtime_ms = int((time.monotonic() - started) * 1000)
            _LOG.info("job '%s' has finished after %d ms", self._name, runtime_ms)
            self._result.set_result(
                JobExecutionResult(self._id, runtime_ms, outcome.accumulators, outcome.metrics)
            )
        finally:
            self._ended.set()

    def _fail(self, status: JobStatus, failure: BaseException) -> None:
        self._notify_end(status, failure)
        self._status = status
        if getattr(failure.__cause__, "is_shown_whole", None) is False:
            failure.__traceback__ = (
                None  # it failed on an executor: the traceback of the driver is of no use
            )
        _LOG.info("job '%s' is %s: %s", self._name, status.name.lower(), type(failure).__name__)
        self._outcome.set_exception(failure)
        self._result.set_exception(failure)

    def _notify_end(self, status: JobStatus, failure: BaseException | None) -> None:
        with self._transition:  # a cancellation comes before or after it
            self.last_status = status
        for call in self.at_end:
            call(status, failure)

    def get_job_id(self) -> JobID:
        """A random id, one per run."""
        return self._id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """The current status."""
        is_waiting = self.restarts is not None and self.restarts.is_waiting
        if is_waiting and self._status is JobStatus.RUNNING:
            return CompletableFuture.completed(JobStatus.RESTARTING)
        return CompletableFuture.completed(self._status)

    def cancel(self) -> CompletableFuture[None]:
        """Stops the job. The future is completed when the job has ended."""
        done: CompletableFuture[None] = CompletableFuture()
        with self._transition:
            is_running = self.last_status is None
            if is_running:
                self._is_cancelled.set()
                self._status = JobStatus.CANCELLING
        if is_running:
            self._stop()
        self._result.add_done_callback(lambda _: done.set_result(None))
        return done

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result, or the job's error."""
        self.is_awaited = True
        return self._result

    @property
    def failure(self) -> BaseException | None:
        """The error of a job that has ended; None if it has succeeded."""
        return self._result.exception()

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The metrics of the job; empty before it has ended."""
        found: dict[str, Any] = {}
        if self._status is JobStatus.FINISHED:
            found = self._result.result().get_all_accumulator_results()
        return CompletableFuture.completed(found)

    def current_metrics(self, job: JobProgram, running: Mapping[int, TaskMetrics]) -> JobMetrics:
        """The metrics of all epochs of this run, or of the tasks of a bounded job.

        Args:
            job: The program of the job.
            running: The counts of running tasks, by task number, as `progress` has them.
        """
        if self.history is not None:
            return self.history.totals_with(running)
        if self.last_metrics is not None:
            return self.last_metrics
        finished = {} if self.progress is None else self.progress.finished_tasks()
        return metrics_so_far(job, {**running, **finished})

    @property
    def last_progress(self) -> EpochProgress | None:
        """The last epoch; None before the first one, and for jobs without epochs."""
        return None if self.history is None else self.history.last

    @property
    def recent_progress(self) -> list[EpochProgress]:
        """The last 100 epochs of this run; empty for jobs without epochs."""
        return [] if self.history is None else self.history.recent

    def collected(self, sink_uid: str) -> Iterator[Any]:
        """The records of a collecting sink, which can be read once.

        For a bounded job, the call waits for its end. The records of an unbounded job arrive while it runs. If the job
        fails, the iterator raises its error after the last record.
        """
        self.is_awaited = True
        if self._records is None:
            return self._outcome.result().collected(sink_uid)
        return self._while_running(self._records.read(sink_uid))

    def _while_running(self, records: Iterator[Any]) -> Iterator[Any]:
        yield from records
        self._outcome.result()

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,  # noqa: ARG002 - the contract
        savepoint_directory: str | None = None,  # noqa: ARG002 - the contract
    ) -> CompletableFuture[str]:
        """Raises an error with the reason of `why_no_savepoint`."""
        raise self._no_savepoint("stop_with_savepoint")

    def trigger_savepoint(
        self,
        savepoint_directory: str | None = None,  # noqa: ARG002 - the contract
    ) -> CompletableFuture[str]:
        """Raises an error with the reason of `why_no_savepoint`."""
        raise self._no_savepoint("trigger_savepoint")

    def why_no_savepoint(self) -> str:
        """Why the job takes no savepoints, and what to do instead."""
        return "a bounded job has no checkpoints; run it again instead"

    def _no_savepoint(self, method: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(f"{method}: {self.why_no_savepoint()}")
