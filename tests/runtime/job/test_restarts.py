"""Restart strategies: when a failed job starts again."""

from __future__ import annotations

import logging
import queue
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import MapFunction
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.runtime.errors import CheckpointInUseError, TaskFailedError
from opchain.runtime.job.restarts import Restarts, RestartStrategy

if TYPE_CHECKING:
    from pathlib import Path


class Job:
    """Fails at the given times, by a clock that its pauses advance; then succeeds."""

    def __init__(self, strategy: RestartStrategy, runs_ms: list[int]) -> None:
        self.now_ms = 0
        self.pauses_ms: list[int] = []
        self._runs_ms = runs_ms
        self.restarts = Restarts(strategy, "job", lambda: self.now_ms)

    def run(self) -> int:
        return self.restarts.run(self._attempt, self)  # type: ignore[arg-type]  # an Event with a clock

    def is_set(self) -> bool:
        return False

    def _attempt(self, number: int) -> int:
        if number == len(self._runs_ms):
            return number
        self.now_ms += self._runs_ms[number]
        raise OSError(f"failure {number}")

    def wait(self, seconds: float) -> bool:
        assert self.restarts.is_waiting
        self.pauses_ms.append(round(seconds * 1000))
        self.now_ms += round(seconds * 1000)
        return False


def test_without_a_strategy_the_first_failure_ends_the_job() -> None:
    with pytest.raises(OSError, match="failure 0"):
        Job(RestartStrategy(), [1]).run()


def test_a_fixed_delay_is_the_same_before_each_of_a_limited_number_of_restarts() -> None:
    strategy = RestartStrategy("fixed-delay", attempts=3, delay_ms=20)
    job = Job(strategy, [5, 5, 5])
    assert job.run() == 3
    assert job.pauses_ms == [20, 20, 20]
    assert not job.restarts.is_waiting
    failures = [(str(failure.error), failure.restart) for failure in job.restarts.failures]
    assert failures == [("failure 0", 1), ("failure 1", 2), ("failure 2", 3)]
    assert [failure.at_ms for failure in job.restarts.failures] == [5, 30, 55]
    with pytest.raises(OSError, match="failure 3") as raised:
        Job(strategy, [5, 5, 5, 5]).run()
    assert "restarted 3 times" in raised.value.__notes__[0]


def test_a_failure_rate_allows_any_number_of_rare_failures() -> None:
    strategy = RestartStrategy("failure-rate", attempts=2, delay_ms=10, interval_ms=100)
    assert Job(strategy, [41] * 50).run() == 50  # every 51 ms
    with pytest.raises(OSError, match="failure 2"):
        Job(strategy, [40] * 50).run()
    often = Job(strategy, [41] * 50)
    often.run()
    assert [failure.restart for failure in often.restarts.failures] == list(range(31, 51))


def test_an_exponential_delay_grows_to_its_limit_and_is_reset() -> None:
    strategy = RestartStrategy(
        "exponential-delay",
        attempts=10,
        delay_ms=100,
        most_delay_ms=1000,
        multiplier=2,
        reset_ms=5000,
        jitter=0,
    )
    job = Job(strategy, [1, 1, 1, 1, 1, 4999, 5000, 1])
    assert job.run() == 8
    assert job.pauses_ms == [100, 200, 400, 800, 1000, 1000, 100, 200]
    with pytest.raises(OSError, match="failure 10"):
        Job(strategy, [1] * 11).run()


def test_jitter_is_bounded_and_deterministic() -> None:
    strategy = RestartStrategy(
        "exponential-delay", attempts=99, delay_ms=900, most_delay_ms=1000, jitter=0.1
    )
    first, second = Job(strategy, [1] * 20), Job(strategy, [1] * 20)
    assert first.run() == second.run() == 20
    assert first.pauses_ms == second.pauses_ms
    assert len(set(first.pauses_ms)) > 5
    assert all(900 <= pause <= 1000 for pause in first.pauses_ms)


def test_jitter_makes_no_delay_shorter_than_the_initial_one() -> None:
    """Flink: `ExponentialDelayRestartBackoffTimeStrategy.calculateActualBackoffTime`."""
    strategy = RestartStrategy(
        "exponential-delay", attempts=99, delay_ms=1000, most_delay_ms=1100, jitter=0.5
    )
    job = Job(strategy, [1] * 20)
    job.run()
    assert min(job.pauses_ms) == 1000
    assert max(job.pauses_ms) == 1100


def test_an_error_that_a_restart_cannot_solve_ends_the_job() -> None:
    def attempt(_: int) -> int:
        raise CheckpointInUseError("somebody else has the place")

    with pytest.raises(CheckpointInUseError):
        Restarts(RestartStrategy("fixed-delay", attempts=5)).run(attempt, threading.Event())


def test_a_job_that_waits_for_its_restart_can_be_cancelled() -> None:
    cancelled = threading.Event()
    restarts = Restarts(RestartStrategy("fixed-delay", attempts=5, delay_ms=10**9))

    def attempt(_: int) -> int:
        threading.Timer(0.05, cancelled.set).start()
        raise OSError("no connection")

    with pytest.raises(TaskFailedError, match="cancelled"):
        restarts.run(attempt, cancelled)
    with pytest.raises(OSError, match="no connection"):  # a job that was cancelled before it failed
        restarts.run(attempt, cancelled)
    assert restarts.count == 1


class FailsThreeTimes(MapFunction[int, Any]):
    def open(self, runtime_context: Any) -> None:
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value: int) -> Any:
        if value == 7 and self.attempt < 3:
            raise ValueError(f"attempt {self.attempt}")
        return value, self.attempt


def restarting(attempts: int) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", str(attempts))
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def test_a_bounded_job_restarts_from_the_beginning(tmp_path: Path) -> None:
    env = restarting(3)
    found = env.from_collection(list(range(10))).map(FailsThreeTimes()).execute_and_collect()
    assert sorted(found) == [(number, 3) for number in range(10)]
    env = restarting(2)
    found = env.from_collection([7]).map(FailsThreeTimes()).execute_and_collect()
    with pytest.raises(ValueError, match="attempt 2") as raised:
        list(found)
    assert any("restarted 2 times" in note for note in raised.value.__notes__)


class Told(logging.Handler):
    """The log messages about restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: queue.Queue[str] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        if "follows in" in record.getMessage():
            self.messages.put(record.getMessage())


def test_the_log_names_failure_operator_and_record_of_a_restart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = restarting(3)
    numbers = env.from_collection([7]).map(FailsThreeTimes())
    assert list(numbers.execute_and_collect()) == [(7, 3)]
    told = [record for record in caplog.records if "follows in" in record.getMessage()]
    assert [record.exc_info for record in told] == [None] * 3
    first, *problem = told[0].getMessage().splitlines()
    assert first.startswith("job 'DataStream Collect' failed; restart 1 follows in 1 ms")
    assert problem[0] == "  ValueError: attempt 0"
    assert re.fullmatch(r"  in 'Map' \(test_restarts.py:\d+\), at record 7", problem[1])
    assert len(problem) == 3  # and the line about the task


def test_the_log_warns_that_an_unbounded_job_in_process_loses_its_state() -> None:
    env = restarting(3)
    source: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=1000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.map(FailsThreeTimes()).sink_to(DiscardingSink())
    told = Told()
    logger = logging.getLogger("opchain.job")
    logger.addHandler(told)
    try:
        client = env.execute_async("endless")
        messages = [told.messages.get(timeout=60) for _ in range(3)]
        client.cancel().result(60)
    finally:
        logger.removeHandler(told)
    start = "in 1 ms from the beginning, without the state that it had ("
    assert all(start in message for message in messages)
