"""Slot sharing: one task of Spark runs all tasks of a slot, and the results of the job do not change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forms import Ran, job_of, notes_of, run_job, seen

from opchain.common import Configuration, Encoder, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import FileSink
from opchain.runtime.errors import TaskFailedError
from opchain.runtime.spark.bounded_job import spark_run
from opchain.spark import SparkSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from opchain.runtime.job.progress import StageProgress
    from opchain.runtime.job.run import JobRun

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

COUNT = 40


def stages_of(run: JobRun, session: SparkSession) -> list[StageProgress]:
    """The stages of a finished job, once Spark's status tracker has processed all events."""
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert run.progress is not None
    return list(run.progress.stages())


class PriceError(Exception):
    pass


def branches(
    right: Callable[[int], Any] = abs, group: str = "default"
) -> Callable[[StreamExecutionEnvironment], None]:
    """Two vertices of parallelism 2 between one of 3 and one of 1."""

    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, COUNT).set_parallelism(3)
        left = numbers.rebalance().map(lambda n: -n).name("left").set_parallelism(2)
        other = numbers.rebalance().map(right).name("right").set_parallelism(2)
        other = other.slot_sharing_group(group)
        seen(left.union(other).rebalance().map(str).set_parallelism(1), "all").set_parallelism(1)
        seen(other, "right").set_parallelism(2)

    return draw


def test_a_stage_has_one_spark_task_per_slot(session: SparkSession) -> None:
    job = job_of(branches())
    run = spark_run(job)
    ran = Ran(job, run._run())
    stages = stages_of(run, session)
    assert [(stage.tasks, stage.done) for stage in stages] == [(3, 3), (2, 2), (1, 1)]
    assert [stage.records for stage in stages] == [COUNT, 2 * COUNT, 2 * COUNT]
    here = run_job(job)
    assert [ran.subtasks(name) for name in ("all", "right")] == [
        here.subtasks(name) for name in ("all", "right")
    ]
    assert ran.counters() == here.counters()
    assert len(ran.records("all")) == 2 * COUNT


def test_slot_sharing_groups_have_separate_slots(session: SparkSession) -> None:
    job = job_of(branches(group="apart"))
    run = spark_run(job)
    ran = Ran(job, run._run())
    assert [stage.done for stage in stages_of(run, session)] == [3, 4, 1]
    assert ran.subtasks("all") == run_job(job).subtasks("all")


def test_the_error_names_the_failed_task_and_not_others_in_its_slot() -> None:
    def check(number: int) -> int:
        if number == COUNT // 2:
            raise PriceError(number)
        return number

    with pytest.raises(PriceError) as caught:
        spark_run(job_of(branches(check)))._run()
    notes = notes_of(caught.value)
    assert "in 'right' (test_stage_tasks.py:" in notes
    assert "in task right -> " in notes
    assert "left" not in notes


class NeedsFile:
    """A function whose module reads a data file when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __setstate__(self, state: dict[str, str]) -> None:
        Path(state["path"]).read_text("utf-8")

    def __call__(self, number: int) -> int:
        return number


def test_the_error_of_a_missing_data_file_says_how_data_files_are_sent(tmp_path: Path) -> None:
    job = job_of(branches(NeedsFile(str(tmp_path / "prices.json"))))
    with pytest.raises(FileNotFoundError) as caught:
        spark_run(job)._run()
    notes = notes_of(caught.value)
    assert "while loading the functions of 'right" in notes
    assert "name their folder by env.add_python_file()" in notes


def test_an_error_with_only_a_partition_names_all_its_tasks() -> None:
    def die(number: int) -> int:
        os._exit(number)

    with pytest.raises(TaskFailedError) as caught:
        spark_run(job_of(branches(die)))._run()
    text = str(caught.value)
    assert text.startswith("task left (")
    assert " or right -> " in text
    assert "in each of its 3 attempts, lost its Python process" in text


def test_all_tasks_of_a_slot_are_retried_without_output_of_the_first_attempt(
    tmp_path: Path, session: SparkSession
) -> None:
    """The first task has ended, and its sink has sent its output, when the second one fails."""
    mark, out = tmp_path / "failed", tmp_path / "out"

    def fail_once(number: int) -> int:
        if not mark.exists():
            mark.touch()
            raise PriceError(number)
        return number

    def draw(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, COUNT).set_parallelism(1)
        for name, function in (("left", abs), ("right", fail_once)):
            sink = FileSink.for_row_format(str(out / name), Encoder.simple_string_encoder())
            numbers.rebalance().map(function).name(name).sink_to(sink.build())

    job = job_of(draw, parallelism=2)
    assert [len(slot) for slot in job.stages[1].slots] == [2, 2]
    run = spark_run(job)
    run._run()
    assert mark.exists()
    stage = stages_of(run, session)[1]
    assert (stage.tasks, stage.done, stage.records) == (2, 2, 2 * COUNT)
    for name in ("left", "right"):
        files = [path for path in (out / name).rglob("*") if path.is_file()]
        assert [path.name for path in files if path.name.startswith(".")] == []
        lines = [int(line) for path in files for line in path.read_text().splitlines()]
        assert sorted(lines) == list(range(1, COUNT + 1))


def test_dataframes_have_separate_slots(session: SparkSession) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    one, other = session.range(0, 10, 1, 3), session.range(10, 20, 1, 1)
    numbers = env.from_sequence(20, 29).union(env.from_sequence(30, 39).map(lambda n: n))
    for rows in (one, other):
        numbers = numbers.union(env.from_dataframe(rows).map(lambda row: row.id))
    found = numbers.rebalance().map(lambda n: n).collect_async()
    env.execute()
    assert sorted(found) == list(range(40))


def test_an_epoch_whose_slot_is_retried_counts_each_record_once(tmp_path: Path) -> None:
    """The first task of the slot has continued to the next epoch when the second one fails."""
    (tmp_path / "in").mkdir()
    for name in ("1", "2", "3"):
        (tmp_path / "in" / name).write_text("a\nb\nc\na\n")
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    options = {"maxFilesPerTrigger": "1"}
    source = SparkSource("text", options, path=str(tmp_path / "in"), is_streaming=True)
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows")
    pairs = rows.map(lambda row: (row[0], 1))

    def add(one: tuple[str, int], other: tuple[str, int]) -> tuple[str, int]:
        return one[0], one[1] + other[1]

    def fail_once(pair: tuple[str, int]) -> tuple[str, int]:
        mark = tmp_path / "failed"
        if pair == ("a", 4) and not mark.exists():
            mark.touch()
            raise PriceError(pair)
        return pair

    counts = pairs.key_by(lambda pair: pair[0]).reduce(add)
    left = counts.name("left").collect_async()
    checked = pairs.key_by(lambda pair: pair[0]).reduce(add).map(fail_once)
    right = checked.name("right").collect_async()
    env.execute()
    assert (tmp_path / "failed").exists()
    expected = [("a", n + 1) for n in range(6)] + [(w, n + 1) for w in "bc" for n in range(3)]
    assert sorted(left) == sorted(right) == expected
