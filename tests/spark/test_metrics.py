"""Each subtask's metrics are counted once, even if Spark retries tasks."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from forms import Ran, job_of, run_job, seen

from opchain.datastream import MapFunction, RuntimeContext, RuntimeExecutionMode
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.spark.bounded_job import BoundedJob, spark_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from opchain.datastream import StreamExecutionEnvironment
    from opchain.runtime.program.vertex_program import JobProgram

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]


class Counts(MapFunction[int, int]):
    """Counts each record with a metric and an accumulator."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_metric_group().counter("seen")
        self.sum = runtime_context.get_long_counter("sum")

    def map(self, value: int) -> int:
        self.seen.inc()
        self.sum.add(value)
        return value


class CountsAndFailsFirst(Counts):
    """The first attempt of subtask 1 fails at its last record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        is_first = runtime_context.get_attempt_number() == 0
        self.fails = is_first and runtime_context.get_index_of_this_subtask() == 1

    def map(self, value: int) -> int:
        if self.fails and value >= 98:
            raise ConnectionError("try again")
        return super().map(value)


def drawing(function: Counts) -> Any:
    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(0, 99).name("numbers").rebalance()
        counted = numbers.map(function).name("count").uid("count")
        counted.key_by(lambda n: n % 7).reduce(lambda a, b: a + b).name("sum").print()

    return draw


def test_retried_tasks_are_counted_once() -> None:
    job = job_of(drawing(CountsAndFailsFirst()), parallelism=2)
    result = spark_run(job).run_here().get_job_execution_result().result()
    count = result.metrics.operator("count")
    assert (count.records_in, count.records_out, count.registered) == (100, 100, {"seen": 100})
    assert result.get_all_accumulator_results() == {"sum": sum(range(100))}
    attempts = [task.attempt for task in result.metrics.vertex("count").subtasks]
    assert attempts == [0, 1]


def test_metrics_on_spark_are_those_of_a_run_in_process() -> None:
    job = job_of(drawing(Counts()), parallelism=2)
    here = run_job(job).outcome.metrics
    there = spark_run(job).run_here().get_job_execution_result().result().metrics
    for one, other in zip(here.operators, there.operators, strict=True):
        assert one.subtasks == other.subtasks
    for mine, other_vertex in zip(here.vertices, there.vertices, strict=True):
        for name in ("numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "numBuffersIn"):
            assert mine.values()[name] == other_vertex.values()[name]
    assert [line.split()[0] for line in here.table().splitlines()] == [
        line.split()[0] for line in there.table().splitlines()
    ]


def of_readers(names: str) -> JobProgram:
    """A batch job in which operators read the result of one rebalance; c reads it a stage later."""

    def draw(env: StreamExecutionEnvironment) -> None:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        random_bytes = random.Random(1).randbytes
        records = env.from_collection([random_bytes(500) for _ in range(1000)]).name("in")
        sent = records.rebalance()
        a = sent.map(len).name("a")
        if "b" in names:
            seen(sent.map(lambda record: record[0]).name("b"), "b")
        if "c" in names:
            a = sent.union(a.map(lambda n: b"").rebalance()).map(len).name("c")
        seen(a, "a")

    return job_of(draw, parallelism=2)


def shuffle_bytes(session: SparkSession, group: str) -> int:
    """The bytes that the stages of a job have written for later stages."""
    tracker, store = (
        session.sparkContext.statusTracker(),
        session.sparkContext._jsc.sc().statusStore(),
    )
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    return sum(
        store.lastStageAttempt(stage).shuffleWriteBytes()
        for job in jobs
        if job is not None
        for stage in job.stageIds
    )


def test_two_readers_of_one_result_cost_one_shuffle(session: SparkSession) -> None:
    written, sent = {}, {}
    for names in ("a", "ab", "abc"):
        job = of_readers(names)
        here = run_job(job)
        bounded = BoundedJob(session, job, ship_vertices(job))
        there = Ran(job, bounded.run())
        for sink in names.removesuffix("c"):
            assert there.subtasks(sink) == here.subtasks(sink) != {}
        for ran in (here, there):
            values = ran.outcome.metrics.vertex("Source: in").values()
            assert values["numRecordsOut"] == 1000
            sent[names] = values["numBytesOut"]
        written[names] = shuffle_bytes(session, bounded.group)
    assert sent["a"] == sent["ab"] == sent["abc"]
    assert 500_000 < written["a"] < written["ab"] < 1.05 * written["a"]
    # Records from the first stage to c pass through the second stage.
    assert written["abc"] < 2.05 * written["a"]
