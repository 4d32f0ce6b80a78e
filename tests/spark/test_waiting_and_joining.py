"""Operators with threads or chained sources on executors give the same results as in this process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from forms import Ran, job_of, notes_of, run_job, seen

from opchain.common import WatermarkStrategy
from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.datastream import AsyncDataStream, AsyncFunction
from opchain.datastream.connectors import NumberSequenceSource
from opchain.runtime.spark.bounded_job import spark_run

if TYPE_CHECKING:
    from opchain.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]


def run(job: Any) -> Ran:
    return Ran(job, spark_run(job)._run())


class Answer(AsyncFunction[int, str]):
    async def async_invoke(self, value: int) -> list[str]:
        for _ in range(value % 5):
            await asyncio.sleep(0)
        if value == 13:
            raise ConnectionError("thirteen")
        return [f"answer {value}"]


def calls(first: int, last: int) -> Any:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(first, last).rebalance()
        seen(AsyncDataStream.ordered_wait(numbers, Answer(), 60_000, 4), "ordered")
        seen(AsyncDataStream.unordered_wait(numbers, Answer(), 60_000, 4), "unordered")

    return draw


def test_asynchronous_calls_give_the_same_results_as_in_process() -> None:
    job = job_of(calls(20, 100), parallelism=2)
    on_spark, here = run(job), run_job(job)
    assert on_spark.subtasks("ordered") == here.subtasks("ordered")
    assert sorted(on_spark.records("unordered")) == sorted(here.records("ordered"))
    assert len(on_spark.records("unordered")) == 81


def test_the_error_of_an_asynchronous_call_keeps_its_type() -> None:
    with pytest.raises(ConnectionError, match="thirteen") as raised:
        run(job_of(calls(13, 13)))
    assert "at record 13" in notes_of(raised.value)


def test_chained_sources_give_the_same_results_as_in_process() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        none = WatermarkStrategy.no_watermarks()
        streams = [
            env.from_source(NumberSequenceSource(1, 40), none, "inside"),
            env.from_source(NumberSequenceSource(100, 120), none, "outside").rebalance(),
        ]
        functions: Any = [lambda n: [("inside", n)], lambda n: [("outside", n)]]
        seen(multiple_input(streams, functions), "out")

    job = job_of(draw, parallelism=2, batch_size=8)
    assert run(job).subtasks("out") == run_job(job).subtasks("out")
