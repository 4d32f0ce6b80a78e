from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.interception import CapturedJobClient
from opchain.runtime.job.client import CompletableFuture, JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.compiler.dsl.collected import CloseableIterator
    from opchain.datastream import StreamExecutionEnvironment


class RunningJob(CapturedJobClient):
    def __init__(self, *records: Any) -> None:
        self.records = records
        self.status = JobStatus.RUNNING
        self.asked: list[str] = []

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        return CompletableFuture.completed(self.status)

    def cancel(self) -> CompletableFuture[None]:
        self.status = JobStatus.CANCELED
        return CompletableFuture.completed(None)

    def collected(self, sink_uid: str) -> Iterator[Any]:
        self.asked.append(sink_uid)
        return iter(self.records)


@pytest.fixture
def collected(env: StreamExecutionEnvironment) -> CloseableIterator[int]:
    return env.from_sequence(1, 3).collect_async()


def test_collected_records_come_from_the_sink_of_the_job(collected: CloseableIterator[int]) -> None:
    job = RunningJob(1, 2, 3)
    collected.attach(job)
    assert (next(collected), collected.next(), list(collected)) == (1, 2, [3])
    assert job.asked == ["dataStreamCollect_2"]


def test_closing_the_iterator_cancels_a_running_job(collected: CloseableIterator[int]) -> None:
    job = RunningJob(1, 2, 3)
    collected.attach(job)
    with collected as records:
        assert next(records) == 1
    assert job.status is JobStatus.CANCELED
    assert list(collected) == []


def test_closing_the_iterator_does_not_change_a_finished_job(
    collected: CloseableIterator[int],
) -> None:
    job = RunningJob()
    job.status = JobStatus.FINISHED
    collected.attach(job)
    collected.close()
    collected.close()
    assert job.status is JobStatus.FINISHED


def test_closing_the_iterator_before_the_job_does_nothing(
    collected: CloseableIterator[int],
) -> None:
    collected.close()
    assert list(collected) == []
