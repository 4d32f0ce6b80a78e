"""Counts that running tasks send to the driver, and which of them the driver accepts."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from example_metrics import TASK

from opchain import StreamExecutionEnvironment
from opchain.compiler.graph.plan import required
from opchain.compiler.interception import watching_jobs
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.spark.stage_progress import CountsAddress, LiveCounts, datagram

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = CountsAddress("127.0.0.1", 1, b"k" * 32, checkpoint_id=7)


def test_counts_are_received_as_they_were_sent() -> None:
    counts = LiveCounts()
    counts.begin(ADDRESS, 7)
    counts.take(datagram(ADDRESS, 3, TASK), ADDRESS.key)
    expected = replace(TASK.counts_only(), mail_latency_ms=HistogramValue())
    assert counts.running_tasks() == {3: expected}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 100,
        datagram(replace(ADDRESS, key=b"other" * 6), 3, TASK),
        datagram(replace(ADDRESS, checkpoint_id=6), 3, TASK),
        datagram(ADDRESS, 3, TASK)[:-1],
    ],
    ids=["empty", "noise", "another key", "another epoch", "truncated"],
)
def test_unsigned_counts_and_counts_of_other_epochs_are_ignored(data: bytes) -> None:
    counts = LiveCounts()
    counts.begin(ADDRESS, 7)
    counts.take(data, ADDRESS.key)
    assert counts.running_tasks() == {}


def test_a_new_epoch_forgets_the_counts_of_the_one_before() -> None:
    counts = LiveCounts()
    counts.begin(ADDRESS, 7)
    counts.take(datagram(ADDRESS, 3, TASK), ADDRESS.key)
    address = counts.begin(ADDRESS, 8)
    assert address is not None
    assert address.checkpoint_id == 8
    assert counts.running_tasks() == {}


def test_counts_of_a_running_task_are_received(session: Any, tmp_path: Path) -> None:
    del session
    go = tmp_path / "go"

    def slow(number: int) -> int:
        while number == 19_000 and not go.exists():
            Event().wait(0.05)
        return number

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(range(20_000)).map(slow).print()
    with watching_jobs() as jobs:
        client: Any = env.execute_async("numbers")
    assert required(jobs[0].plan.job_program).vertices
    while not any(counts.records_in for counts in client.progress.running_tasks().values()):
        assert not client.get_job_status().result().is_terminal_state()
        Event().wait(0.1)
    (counts,) = client.progress.running_tasks().values()
    assert 0 < counts.records_in < 20_000
    assert client.progress.finished_tasks() == {}
    go.touch()
    client.get_job_execution_result().result(120)
    assert client.progress.running_tasks() == {}
