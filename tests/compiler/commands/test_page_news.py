from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from epoch_runs import EpochRun, given
from example_epoch import PROGRESS
from example_metrics import TASK
from forms import seen

from opchain.common import Configuration
from opchain.compiler.commands.page_server import PageNews
from opchain.compiler.interception import StartedJob, watching_jobs
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.epochs.epoch_history import EpochHistory
from opchain.runtime.job.progress import StageProgress
from opchain.runtime.job.run import JobRun
from opchain.runtime.shipping.outcome import JobOutcome

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.runtime.measurements.task_metrics import TaskMetrics


def no_plan(client: JobRun) -> StartedJob:
    return StartedJob("job", client, cast("Any", None))


def test_an_unbounded_job_tells_of_each_epoch_once_and_of_its_end(tmp_path: Path) -> None:
    epochs = EpochRun(lambda env: seen(given(env, "words"), "words"), tmp_path)
    history = EpochHistory(epochs.job)
    let_go = threading.Event()

    def run() -> JobOutcome:
        assert let_go.wait(60)
        raise RuntimeError("stopped")

    client = JobRun(run, let_go.set, history=history)
    news = PageNews(no_plan(client))
    first = news.take()
    assert first == {
        "status": "created",
        "isOver": False,
        "epoch": None,
        "tasks": None,
        "numbers": None,
    }
    assert news.take() is None
    client.start()
    history.add(PROGRESS, epochs.run(words=["a"] * 3).outcome)
    told = news.take()
    assert told is not None
    assert (told["status"], told["isOver"]) == ("running", False)
    assert told["epoch"] == {
        "epoch": 1,
        "recordsPerSecond": round(PROGRESS.records_per_second, 1),
        "durationMs": 20.5,
        "stateBytes": 0,
        "watermarkLagMs": None,
    }
    (vertex,) = told["numbers"].values()
    assert vertex["recordsIn"] == 3
    assert news.take() is None
    client.cancel().result(60)
    last = news.take()
    assert last is not None
    assert (last["status"], last["isOver"]) == ("canceled", True)
    assert last["numbers"] == told["numbers"]
    epochs.close()


class Stages:
    """Two of three tasks are done: the first, and one of the two behind it."""

    def finished_tasks(self) -> dict[int, TaskMetrics]:
        return {0: TASK, 2: replace(TASK, operators=TASK.operators * 2)}

    def stages(self) -> list[StageProgress]:
        return [StageProgress("read", 1, done=1), StageProgress("count", 2, running=1, done=1)]


def test_a_bounded_job_tells_how_many_tasks_are_done() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.from_collection([1]).rebalance().map(str).print()
    plan = compile_program(env.program())
    run = JobRun(JobOutcome, lambda: None, progress=Stages())
    news = PageNews(StartedJob("job", run, plan)).take()
    assert news is not None
    assert news["tasks"] == {"done": 2, "all": 3}
    assert [vertex["recordsIn"] for vertex in news["numbers"].values()] == [3, 3]
    assert [len(vertex["subtasks"]) for vertex in news["numbers"].values()] == [1, 1]


def test_a_bounded_job_has_its_numbers_at_the_end() -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1, 2, 3]).print()
    with watching_jobs() as jobs:
        env.execute("numbers")
    news = PageNews(jobs[0]).take()
    assert news is not None
    assert (news["status"], news["isOver"]) == ("finished", True)
    assert sum(vertex["recordsIn"] for vertex in news["numbers"].values()) == 3
