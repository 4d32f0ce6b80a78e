"""The handle of one job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.runtime.epochs.epoch_progress import EpochProgress
    from opchain.runtime.job.completable_future import CompletableFuture
    from opchain.runtime.job.execution_result import JobExecutionResult
    from opchain.runtime.job.status import JobID, JobStatus


class JobClient(ABC):
    """What `execute_async` gives: asks about one job, and steers it. Flink: JobClient."""

    @abstractmethod
    def get_job_id(self) -> JobID:
        """The job's id."""

    @abstractmethod
    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """The job's status, as of now."""

    @abstractmethod
    def cancel(self) -> CompletableFuture[None]:
        """Stops the job at once; completed when no task of it runs any more."""

    @abstractmethod
    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stops the job after what it has read, and keeps its state.

        Args:
            advance_to_end_of_event_time: Whether to send the last watermark first, so that every
                window fires (drain); else windows stay as they are (suspend).
            savepoint_directory: Where to; the default directory if not given.

        Returns:
            The savepoint's path.
        """

    @abstractmethod
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Keeps the job's state as of now, and lets it continue.

        Args:
            savepoint_directory: Where to; the default directory if not given.

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
        """What the last epoch of an unbounded job did; None where there is none. Spark: `lastProgress`."""
        return None

    @property
    def recent_progress(self) -> list[EpochProgress]:
        """The last epochs of this run, the latest at the end. Spark: `recentProgress`."""
        return []
