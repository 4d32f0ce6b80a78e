from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of

from opchain.runtime.job.progress import StageProgress
from opchain.runtime.spark.bounded_job import spark_run
from opchain.runtime.spark.stage_progress import LatestByTask, SparkProgress

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]


def program(function: Any) -> Any:
    def draw(env: Any) -> None:
        numbers = env.from_collection(list(range(7))).name("numbers").rebalance()
        numbers.map(function).name("texts").key_by(str).sum().name("sums").print()

    return job_of(draw, parallelism=2)


NAMES = ["Source: numbers x1", "texts x2", "sums -> Sink: Print to Std. Out x2"]


def test_later_counts_of_a_task_replace_earlier_ones() -> None:
    param = LatestByTask()
    assert param.zero({1: 2}) == {}
    assert param.addInPlace({1: 2, 2: 3}, {2: 3, 4: 5}) == {1: 2, 2: 3, 4: 5}


def test_a_job_that_has_not_started_has_no_finished_tasks(session: SparkSession) -> None:
    run = spark_run(program(abs))
    assert run.progress is not None
    assert run.progress.stages() == [
        StageProgress(name, tasks) for name, tasks in zip(NAMES, (1, 2, 2), strict=True)
    ]


def test_a_finished_job_has_all_tasks_done_and_all_records(session: SparkSession) -> None:
    run = spark_run(program(abs))
    run.run_here()
    assert run.progress is not None
    assert run.progress.stages() == [
        StageProgress(NAMES[0], 1, done=1, records=7),
        StageProgress(NAMES[1], 2, done=2, records=7),
        StageProgress(NAMES[2], 2, done=2, records=7),
    ]
    assert isinstance(run.progress, SparkProgress)
    assert not run.progress.has_repeated_stages()
    finished = run.progress.finished_tasks()
    assert sorted(finished) == [0, 1, 2, 3, 4]
    assert finished[0].operators[0].records_out == 7


def test_a_task_with_two_attempts_is_counted_once(session: SparkSession, tmp_path: Path) -> None:
    def fails_once(number: int) -> int:
        mark = tmp_path / "failed"
        if not mark.exists():
            mark.touch()
            raise ValueError(number)
        return number

    run = spark_run(program(fails_once))
    run.run_here()
    assert run.progress is not None
    assert [stage.done for stage in run.progress.stages()] == [1, 2, 2]
    assert [stage.records for stage in run.progress.stages()] == [7, 7, 7]


def test_a_running_job_reports_its_progress(session: SparkSession, tmp_path: Path) -> None:
    def waits(number: int) -> int:
        while not (tmp_path / "go").exists():
            pass
        return number

    run = spark_run(program(waits))
    run.start()
    assert run.progress is not None
    try:
        while not run.progress.stages()[1].running:
            assert not run.get_job_execution_result().done()
        first, second, third = run.progress.stages()
        assert first == StageProgress(NAMES[0], 1, done=1, records=7)
        assert second.done == 0
        assert third == StageProgress(NAMES[2], 2)
    finally:
        (tmp_path / "go").touch()
    run.get_job_execution_result().result()


def test_a_session_that_no_longer_responds_has_no_progress(session: SparkSession) -> None:
    progress = SparkProgress(session.sparkContext, "group", program(abs))

    def refused(group: str) -> list[int]:
        raise ConnectionRefusedError

    progress._tracker.getJobIdsForGroup = refused  # type: ignore[method-assign,assignment]
    assert progress.stages() == []
    assert not progress.has_repeated_stages()


@pytest.mark.parametrize(("attempts", "told"), [([0, 0], False), ([0, 1], True)])
def test_a_stage_that_spark_restarted_is_reported(
    session: SparkSession, attempts: list[int], told: bool
) -> None:
    from pyspark.status import SparkJobInfo  # noqa: PLC0415 - it may be missing

    progress = SparkProgress(session.sparkContext, "group", program(abs))
    infos = [SimpleNamespace(currentAttemptId=partial(int, attempt)) for attempt in attempts]
    tracker: Any = progress._tracker
    tracker.getJobIdsForGroup = lambda group: [7]
    tracker.getJobInfo = lambda number: SparkJobInfo(number, range(len(infos)), "SUCCEEDED")
    tracker._jtracker = SimpleNamespace(getStageInfo=infos.__getitem__)
    assert progress.has_repeated_stages() is told
