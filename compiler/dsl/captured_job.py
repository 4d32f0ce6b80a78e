"""The client of a job that was captured instead of run: it ran 0 ms and gave no records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.client import JobClient
from opchain.runtime.job.completable_future import CompletableFuture
from opchain.runtime.job.execution_result import JobExecutionResult
from opchain.runtime.job.id import JobID
from opchain.runtime.job.status import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

_NO_JOB = JobID("0" * 32)


class CapturedJobClient(JobClient):
    """Lets a program go on after `execute` though nothing ran; see `interception`."""

    def get_job_id(self) -> JobID:
        """The id of no job: all zeros."""
        return _NO_JOB

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """FINISHED."""
        return CompletableFuture.completed(JobStatus.FINISHED)

    def cancel(self) -> CompletableFuture[None]:
        """Does nothing."""
        return CompletableFuture.completed(None)

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,  # noqa: ARG002 - the contract
        savepoint_directory: str | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Refused: there is no state."""
        self._refuse("stop_with_savepoint")

    def trigger_savepoint(
        self,
        savepoint_directory: str | None = None,  # noqa: ARG002 - the contract
    ) -> NoReturn:
        """Refused: there is no state."""
        self._refuse("trigger_savepoint")

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """None."""
        return CompletableFuture.completed({})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """The result of 0 ms."""
        return CompletableFuture.completed(JobExecutionResult(_NO_JOB, 0))

    def collected(self, sink_uid: str) -> Iterator[Any]:  # noqa: ARG002 - the contract
        """No records."""
        return iter(())

    def _refuse(self, call: str) -> NoReturn:
        raise UnsupportedFeatureError(
            f"{call}() needs a running job; this program is being planned, and its jobs do not run"
        )
