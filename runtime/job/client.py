"""The job of a program that runs: JobClient, JobStatus, JobExecutionResult and CompletableFuture."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from concurrent.futures import CancelledError, Future, InvalidStateError
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.measurements.job_metrics import JobMetrics
from opchain.runtime.metrics.accumulators import AccumulatorError, FailedAccumulator
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.runtime.epochs.epoch_progress import EpochProgress


_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, order=True, slots=True)
class JobID:
    """128 bits, printed as 32 hexadecimal digits. Flink: JobID.

    Raises:
        ValueError: The text is not such a number.
    """

    hex_string: str

    def __post_init__(self) -> None:
        if not isinstance(self.hex_string, str) or not _HEX.fullmatch(self.hex_string):
            raise ValueError(
                f"JobID takes 32 lower-case hexadecimal digits, not {self.hex_string!r}"
            )

    def __str__(self) -> str:
        return self.hex_string


class JobStatus(Enum):
    """The status of a job. Flink: JobStatus."""

    CREATED = 0
    """Accepted; nothing runs."""
    RUNNING = 1
    """Some of its tasks run, wait or are done."""
    FAILING = 2
    """It failed, and is being cleaned up."""
    FAILED = 3
    """It failed and will not be tried again."""
    CANCELLING = 4
    """Someone cancelled it, and its tasks are being stopped."""
    CANCELED = 5
    """It was cancelled."""
    FINISHED = 6
    """All of its tasks are done."""
    RESTARTING = 7
    """It failed, and will start again from its last checkpoint."""
    SUSPENDED = 8
    """It stopped here, and may continue elsewhere."""
    RECONCILING = 9
    """It waits for word from tasks that outlived their coordinator."""

    def is_globally_terminal_state(self) -> bool:
        """Whether the job is over for good."""
        return self in {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}

    def is_terminal_state(self) -> bool:
        """Whether the job is over here; a suspended one may continue elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()


@dataclass(frozen=True)
class JobExecutionResult:
    """The id, the run time and the accumulators of a job that is over. Flink: JobExecutionResult.

    Attributes:
        net_runtime: Milliseconds from the start of the first task to the end of the last.
        metrics: What the job counted, by vertex and operator; `print(result.metrics)` shows a table.
    """

    job_id: JobID
    net_runtime: int
    accumulator_results: Mapping[str, Any] = field(default_factory=dict)
    metrics: JobMetrics = field(default_factory=JobMetrics)

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self.job_id

    def _repr_html_(self) -> str:
        """For notebooks: the run time, and the table of metrics."""
        ran = f"<div>the job ran for {self.net_runtime:,} ms</div>"
        return ran + (self.metrics._repr_html_() if self.metrics.vertices else "")

    def is_job_execution_result(self) -> bool:
        """True: the job is over. Flink: isJobExecutionResult."""
        return True

    def get_net_runtime(self) -> int:
        """Milliseconds that the job ran, without compiling and submitting it."""
        return self.net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The accumulator's value, or None if the job had none of that name.

        Raises:
            AccumulatorError: What the subtasks sent could not be merged.
        """
        value = self.accumulator_results.get(accumulator_name)
        if isinstance(value, FailedAccumulator):
            raise AccumulatorError(
                f"the accumulator '{accumulator_name}' of job {self.job_id} has no value: {value.error}"
            )
        return value

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """All accumulators by name.

        Raises:
            AccumulatorError: As `get_accumulator_result`, for any of them.
        """
        return {name: self.get_accumulator_result(name) for name in self.accumulator_results}

    def __str__(self) -> str:
        lines = [f"Job {self.job_id} ran for {self.net_runtime} ms."]
        lines += [f"  {name}: {value}" for name, value in sorted(self.accumulator_results.items())]
        return "\n".join(lines)


class CompletableFuture(Generic[T]):
    """A result that arrives later: a value, an error, or a cancellation. It never changes once it has arrived.

    Threads may race to complete it. Exactly one wins, and its call returns True.

    >>> future = CompletableFuture()
    >>> future.set_result(1), future.set_result(2), future.result()
    (True, False, 1)

    Flink: CompletableFuture of PyFlink, Java's CompletableFuture.

    Args:
        future: The future to complete; a new one if not given. The future of an executor is completed by the
            executor.
    """

    def __init__(self, future: Future[T] | None = None) -> None:
        self._future: Future[T] = Future() if future is None else future

    @staticmethod
    def completed(value: T) -> CompletableFuture[T]:
        """One that has its value already."""
        future: CompletableFuture[T] = CompletableFuture()
        future.set_result(value)
        return future

    def cancel(self) -> bool:
        """Cancels it, unless it is completed; returns whether it is cancelled now."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether it has a value or an error, or was cancelled."""
        return self._future.done()

    def set_result(self, result: T) -> bool:
        """Completes it with a value; returns False if it was completed before."""
        try:
            self._future.set_result(result)
        except InvalidStateError:
            return False
        return True

    def set_exception(self, exception: BaseException) -> bool:
        """Completes it with an error; returns False if it was completed before."""
        try:
            self._future.set_exception(exception)
        except InvalidStateError:
            return False
        return True

    def result(self, timeout: float | None = None) -> T:
        """Waits for the value.

        Args:
            timeout: The longest time to wait, in seconds; None waits forever.

        Raises:
            concurrent.futures.CancelledError: It was cancelled.
            concurrent.futures.TimeoutError: There was no value within the timeout.
            BaseException: The error that it was completed with.
        """
        return self._future.result(timeout)

    def exception(self) -> BaseException | None:
        """The error; None if there is none, or if it is not completed. Does not wait."""
        if not self._future.done():
            return None
        try:
            return self._future.exception()
        except CancelledError as error:
            return error

    def add_done_callback(self, callback: Callable[[CompletableFuture[T]], object]) -> None:
        """Calls back with this future once it is done, in the thread that completes it."""
        self._future.add_done_callback(lambda _: callback(self))

    def __str__(self) -> str:
        if not self.done():
            return "CompletableFuture[not completed]"
        if self.exception() is not None:
            return f"CompletableFuture[completed with {self.exception()!r}]"
        return "CompletableFuture[completed]"


class JobClient(ABC):
    """The result of `execute_async`: shows the state of one job, and controls it. Flink: JobClient."""

    @abstractmethod
    def get_job_id(self) -> JobID:
        """The job's id."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """The job's status, as of now."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Stops the job at once; completed when none of its tasks runs any more."""

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Takes a savepoint of all input that the job has read, and stops the job.

        Args:
            advance_to_end_of_event_time: Whether to send the last watermark first, so that every
                window fires (drain); else windows stay as they are (suspend).
            savepoint_directory: The parent directory of the savepoint; by default the job's.

        Returns:
            The savepoint's path.
        """

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Writes a savepoint of the job's current state. The job continues.

        Args:
            savepoint_directory: Its directory; the default directory if not given.

        Returns:
            The savepoint's path.
        """

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The job's accumulators by name, as of now."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The job's result, once it is over; its error, if it failed."""

    @property
    def last_progress(self) -> EpochProgress | None:
        """The progress of the last epoch of an unbounded job; None without epochs. Spark: `lastProgress`."""
        return None

    @property
    def recent_progress(self) -> list[EpochProgress]:
        """The last epochs of this run, the latest at the end. Spark: `recentProgress`."""
        return []
