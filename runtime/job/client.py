"""JobClient, JobStatus, JobExecutionResult and CompletableFuture."""

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
    """The job was accepted, but nothing runs yet."""
    RUNNING = 1
    """Some tasks run, wait or are finished."""
    FAILING = 2
    """The job has failed, and is being cleaned up."""
    FAILED = 3
    """The job has failed and is not restarted."""
    CANCELLING = 4
    """The job was cancelled, and its tasks are being stopped."""
    CANCELED = 5
    """The job was cancelled."""
    FINISHED = 6
    """All tasks are finished."""
    RESTARTING = 7
    """The job has failed, and restarts from its last checkpoint."""
    SUSPENDED = 8
    """The job has stopped here, and may continue elsewhere."""
    RECONCILING = 9
    """The job waits for reports of tasks that outlived its coordinator."""

    def is_globally_terminal_state(self) -> bool:
        """Whether the job has ended everywhere."""
        return self in {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}

    def is_terminal_state(self) -> bool:
        """Whether the job has ended here. A suspended job may continue elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()


@dataclass(frozen=True)
class JobExecutionResult:
    """The id, the run time and the accumulators of a finished job. Flink: JobExecutionResult.

    Attributes:
        net_runtime: Milliseconds from the start of the first task to the end of the last.
        metrics: The metrics of the job, by vertex and operator; `print(result.metrics)` shows a table.
    """

    job_id: JobID
    net_runtime: int
    accumulator_results: Mapping[str, Any] = field(default_factory=dict)
    metrics: JobMetrics = field(default_factory=JobMetrics)

    def get_job_id(self) -> JobID:
        """The id of the job."""
        return self.job_id

    def _repr_html_(self) -> str:
        """For notebooks: the run time, and the table of metrics."""
        ran = f"<div>the job ran for {self.net_runtime:,} ms</div>"
        return ran + (self.metrics._repr_html_() if self.metrics.vertices else "")

    def is_job_execution_result(self) -> bool:
        """Always True. Flink: isJobExecutionResult."""
        return True

    def get_net_runtime(self) -> int:
        """The run time of the job in milliseconds, without compilation and submission."""
        return self.net_runtime

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of the accumulator. None if the job has no accumulator with this name.

        Raises:
            AccumulatorError: The values of the subtasks could not be merged.
        """
        value = self.accumulator_results.get(accumulator_name)
        if isinstance(value, FailedAccumulator):
            raise AccumulatorError(
                f"the accumulator '{accumulator_name}' of job {self.job_id} has no value: {value.error}"
            )
        return value

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """The values of all accumulators, by name.

        Raises:
            AccumulatorError: The values of an accumulator could not be merged.
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
        """A future that is already completed with a value."""
        future: CompletableFuture[T] = CompletableFuture()
        future.set_result(value)
        return future

    def cancel(self) -> bool:
        """Cancels the future, unless it is completed. Returns whether it is cancelled now."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        """Whether the future was cancelled."""
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether the future has a value or an error, or was cancelled."""
        return self._future.done()

    def set_result(self, result: T) -> bool:
        """Completes the future with a value. Returns False if it was already completed."""
        try:
            self._future.set_result(result)
        except InvalidStateError:
            return False
        return True

    def set_exception(self, exception: BaseException) -> bool:
        """Completes the future with an error. Returns False if it was already completed."""
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
        """The error. None if there is none, or if the future is not completed. Does not wait."""
        if not self._future.done():
            return None
        try:
            return self._future.exception()
        except CancelledError as error:
            return error

    def add_done_callback(self, callback: Callable[[CompletableFuture[T]], object]) -> None:
        """Calls the function with this future once it is completed, in the thread that completes it."""
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
        """The id of the job."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """The current status of the job."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Stops the job immediately. The future is completed when all tasks have stopped."""

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
            savepoint_directory: The parent directory of the savepoint. Default: the job's default directory.

        Returns:
            The path of the savepoint.
        """

    @abstractmethod
    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The current values of the job's accumulators, by name."""

    @abstractmethod
    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result of the job when it has ended, or its error if it has failed."""

    @property
    def last_progress(self) -> EpochProgress | None:
        """The progress of the last epoch of an unbounded job; None without epochs. Spark: `lastProgress`."""
        return None

    @property
    def recent_progress(self) -> list[EpochProgress]:
        """The last epochs of this run, the latest at the end. Spark: `recentProgress`."""
        return []
