from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.job.client import (
    CompletableFuture,
    JobClient,
    JobExecutionResult,
    JobID,
    JobStatus,
)

JOB = JobID("0" * 32)


class FinishedJob(JobClient):
    """The client of a finished job."""

    def get_job_id(self) -> JobID:
        return JOB

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(JobStatus.FINISHED)

    def cancel(self) -> CompletableFuture[None]:
        return CompletableFuture.completed(None)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        return self.trigger_savepoint(savepoint_directory)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        future: CompletableFuture[str] = CompletableFuture()
        future.set_exception(ValueError("the job is over"))
        return future

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        return CompletableFuture.completed({})

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        return CompletableFuture.completed(JobExecutionResult(JOB, 5))


def test_all_methods_of_a_job_client_are_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        JobClient()  # type: ignore[abstract]


def test_methods_of_a_job_client_return_futures() -> None:
    client: JobClient = FinishedJob()
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_job_execution_result().result().get_job_id() == client.get_job_id()
    assert client.get_accumulators().result() == {}
    client.cancel().result()
    with pytest.raises(ValueError, match="the job is over"):
        client.stop_with_savepoint(advance_to_end_of_event_time=True).result()
