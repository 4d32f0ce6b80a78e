"""A cached stream on Spark: a failed attempt writes nothing, and the second job runs nothing upstream."""

from __future__ import annotations

from typing import Any

import pytest

from opchain.datastream import (
    MapFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]


class SquaresAtTheSecondAttempt(MapFunction[int, int]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value: int) -> int:
        if value == 100 and self.attempt == 0:
            raise ConnectionError("try again")
        return value * value


def test_a_second_job_uses_the_stream_cached_by_the_first() -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = env.from_sequence(1, 100).map(SquaresAtTheSecondAttempt()).name("square")
    cached = numbers.cache()
    ran: list[Any] = []
    for _ in range(2):
        with cached.map(lambda n: n).execute_and_collect() as records:
            assert sorted(records) == [n * n for n in range(1, 101)]
            metrics = records._client.get_job_execution_result().result().metrics
            ran.append({operator.name for operator in metrics.operators})
    assert {"square", "CacheWrite"} <= ran[0]
    assert "CacheRead" in ran[1]
    assert not ran[1] & {"square", "CacheWrite"}
