from __future__ import annotations

from dataclasses import replace
from typing import Any

from example_metrics import TASK
from forms import job_of

from opchain.runtime.job.progress import CountedProgress, StageProgress
from opchain.runtime.local.job import local_run


def program() -> Any:
    def draw(env: Any) -> None:
        env.from_collection(list(range(7))).name("numbers").rebalance().map(str).name(
            "texts"
        ).print()

    return job_of(draw, parallelism=2)


COUNTED = replace(TASK, records_in=7)

FIRST, SECOND = "Source: numbers x1", "texts -> Sink: Print to Std. Out x2"


def test_tasks_are_counted_by_stage() -> None:
    progress = CountedProgress(program())
    assert progress.stages() == [StageProgress(FIRST, 1), StageProgress(SECOND, 2)]
    progress.started(0)
    assert progress.stages()[0] == StageProgress(FIRST, 1, running=1)
    progress.finished(0, COUNTED)
    progress.started(2)
    first, second = progress.stages()
    assert first == StageProgress(FIRST, 1, done=1, records=7)
    assert first.is_done
    assert second == StageProgress(SECOND, 2, running=1)
    assert not second.is_done


def test_a_repeated_task_is_counted_once() -> None:
    progress = CountedProgress(program())
    for _ in range(2):
        progress.started(0)
        progress.finished(0, COUNTED)
    assert progress.stages()[0] == StageProgress(FIRST, 1, done=1, records=7)


def test_a_job_in_process_reports_its_progress(capsys: Any) -> None:
    run = local_run(program())
    assert run.progress is not None
    assert [stage.done for stage in run.progress.stages()] == [0, 0]
    assert run.progress.finished_tasks() == {}
    run.run_here()
    finished = run.progress.finished_tasks()
    assert [task.records_in for task in finished.values()] == [7, 4, 3]
    assert run.progress.stages() == [
        StageProgress(FIRST, 1, done=1, records=7),
        StageProgress(SECOND, 2, done=2, records=7),
    ]


def test_progress_omits_metrics_that_functions_registered() -> None:
    progress = CountedProgress(program())
    progress.finished(0, COUNTED)
    (operator,) = progress.finished_tasks()[0].operators
    assert (operator.records_in, operator.registered) == (3, {})
