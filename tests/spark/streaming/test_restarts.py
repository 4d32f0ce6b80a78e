"""An unbounded job that fails and is restarted by its restart strategy, within one run of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.job.client import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opchain.spark import EpochProgress

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

LONGEST_S = 240
WANTED = 300


TRIES = 3
"""Of a task, before Spark gives a job up: see the session."""


class Count(KeyedProcessFunction[int, int, tuple[int, int, int]]):
    """Counts records by key; one task fails a number of times, and leaves a file each time."""

    def __init__(self, failures: Path, most: int) -> None:
        self.failures = failures
        self.most = most

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int, int]]:
        if value >= 40 and value % 5 == 0:
            number = len(list(self.failures.iterdir()))
            if number < self.most:
                (self.failures / str(number)).touch()
                raise ValueError(f"failure {number}")
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value(), self.attempt


def environment(folder: Path, attempts: int) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", str(attempts))
    configuration.set_string("restart-strategy.fixed-delay.delay", "10 ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    return env


def counts(env: StreamExecutionEnvironment, folder: Path, failures: int) -> Any:
    (folder / "failures").mkdir()
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=100)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    counted = stream.key_by(lambda n: n % 5).process(Count(folder / "failures", failures))
    return counted.uid("counts")


def test_a_job_that_fails_three_times_resumes_from_its_last_checkpoint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment(tmp_path, attempts=3)
    epochs: list[EpochProgress] = []
    env.add_epoch_listener(epochs.append)
    found: list[tuple[int, int]] = []
    attempts: list[int] = []
    with counts(env, tmp_path, 3 * TRIES).execute_and_collect("fails three times") as records:
        for value, count, attempt in records:
            found.append((value, count))
            attempts.append(attempt)
            if sum(value < WANTED for value, _ in found) == WANTED:
                break
    assert sorted(value for value, _ in found if value < WANTED) == list(range(WANTED))
    for key in range(5):  # each counted once, in any order
        numbers = sorted(count for value, count in found if value % 5 == key)
        assert numbers == list(range(1, len(numbers) + 1))
    assert [epoch.epoch for epoch in epochs] == list(range(1, len(epochs) + 1))
    restarts = [entry for entry in caplog.messages if "follows in 10 ms" in entry]
    assert [
        next(word for word in ("restart 1", "restart 2", "restart 3") if word in entry)
        for entry in restarts
    ] == ["restart 1", "restart 2", "restart 3"]
    assert attempts[-1] == 3


def test_a_job_fails_when_its_restart_strategy_allows_no_more_restarts(tmp_path: Path) -> None:
    env = environment(tmp_path, attempts=1)
    counts(env, tmp_path, 100).print()
    client = env.execute_async("fails twice")
    with pytest.raises(ValueError, match=f"failure {2 * TRIES - 1}") as raised:
        client.get_job_execution_result().result(LONGEST_S)
    assert any("restarted 1 times" in note for note in raised.value.__notes__)
    assert client.get_job_status().result() is JobStatus.FAILED
