from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from example_metrics import TASK
from forms import seen

from opchain.common import Configuration
from opchain.compiler.interception import StartedJob, watching_jobs
from opchain.compiler.monitoring.job_watch import JobWatch, failure_values, settings_of
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.epochs.epoch_progress import EpochHistory, epoch_progress
from opchain.runtime.errors import add_note
from opchain.runtime.job.progress import StageProgress
from opchain.runtime.job.restarts import Restarts, RestartStrategy
from opchain.runtime.job.run import JobRun
from opchain.runtime.shipping.outcome import JobOutcome

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.runtime.measurements.task_metrics import TaskMetrics


def words(
    tmp_path: Path, fail: bool = False
) -> tuple[Any, EpochHistory, StartedJob, threading.Event]:
    """An unbounded job whose epochs a test runs. It ends when the test sets the event."""
    epochs = EpochRun(lambda env: seen(given(env, "words"), "words"), tmp_path)
    history = EpochHistory(epochs.job)
    let_go = threading.Event()

    def run() -> JobOutcome:
        assert let_go.wait(60)
        error = RuntimeError("stopped")
        if fail:
            add_note(error, f"in task {epochs.job.vertices[0].name} (1/1)#0")
        raise error

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    seen(given(env, "words"), "words")
    client = JobRun(run, let_go.set, history=history)
    started = StartedJob("words", client, compile_program(env.program("words")))
    return epochs, history, started, let_go


def test_job_watch_reports_each_epoch_once_and_the_end_of_the_job(tmp_path: Path) -> None:
    epochs, history, started, _ = words(tmp_path)
    updates = JobWatch(started).updates()
    first = next(updates)
    assert first is not None
    assert (first["status"], first["isOver"], first["epochs"]) == ("created", False, [])
    assert set(first["states"].values()) == {"waiting"}
    assert next(updates) is None
    started.run.start()
    outcome = epochs.run(words=["a"] * 3).outcome
    progress = epoch_progress(
        epochs.job,
        outcome,
        Epoch(1, 1_000),
        run_id="run",
        batch=0,
        checkpoint="place/chk-1",
        durations_ms={"waiting": 500.0, "tasks": 1_000.0},
    )
    history.add(progress, outcome)
    told = next(updates)
    assert told is not None
    assert (told["status"], told["isOver"]) == ("running", False)
    assert set(told["states"].values()) == {"running"}
    (epoch,) = told["epochs"]
    assert (epoch["epoch"], epoch["recordsIn"], epoch["recordsPerSecond"]) == (1, 3, 2.0)
    assert epoch["checkpoint"] == "place/chk-1"
    (vertex,) = told["numbers"].values()
    assert (vertex["recordsIn"], vertex["rateIn"]) == (3, 2.0)
    assert next(updates) is None
    started.run.cancel().result(60)
    last = next(updates)
    assert last is not None
    assert (last["status"], last["isOver"], last["epochs"]) == ("canceled", True, [])
    assert set(last["states"].values()) == {"canceled"}
    assert last["numbers"] == told["numbers"]
    (span,) = last["spans"].values()
    assert span[0] <= span[1]
    epochs.close()


def test_job_watch_reports_the_vertex_and_the_error_of_a_failed_job(tmp_path: Path) -> None:
    epochs, _, started, let_go = words(tmp_path, fail=True)
    watch = JobWatch(started)
    started.run.start()
    while watch.latest()[1]["status"] != "running":
        pass
    let_go.set()
    with pytest.raises(RuntimeError):
        started.run.get_job_execution_result().result(60)
    update = watch.whole()
    assert list(update["states"].values()) == ["failed"]
    (failure,) = update["exceptions"]
    assert failure["title"] == "RuntimeError: stopped"
    assert failure["vertex"] == epochs.job.vertices[0].vertex_id
    assert failure["lines"][-1].startswith("in task ")
    epochs.close()


def test_job_watch_reports_the_state_of_a_job_that_has_already_ended(tmp_path: Path) -> None:
    epochs, _, started, let_go = words(tmp_path)
    started.run.start()
    started.run.cancel().result(60)
    assert list(JobWatch(started).whole()["states"].values()) == ["canceled"]
    let_go.set()
    epochs.close()


def test_job_watch_keeps_failures_that_were_followed_by_restarts(tmp_path: Path) -> None:
    epochs, _, started, let_go = words(tmp_path)
    client = started.run
    client.restarts = Restarts(RestartStrategy("fixed-delay", attempts=2, delay_ms=1))

    def attempt(number: int) -> None:
        if number == 2:
            return
        error = ValueError(f"no price for item {number}")
        add_note(error, f"in 'price' (prices.py:{7 + number}), at record {number}")
        add_note(error, f"in task {epochs.job.vertices[0].name} (1/1)#0")
        if number == 1:
            add_note(
                error, "in epoch 12; if it is started again, the job resumes from place/chk-11"
            )
            add_note(
                error,
                "to run this epoch here, without Spark: opchain replay --epoch 12 place prices.py",
            )
        raise error

    client.restarts.run(attempt, threading.Event())
    update = JobWatch(started).whole()
    assert update["restarts"] == 2
    first, second = update["exceptions"]
    assert first["title"] == "ValueError: no price for item 0"
    assert (first["operator"], first["line"], first["restart"]) == ("price", "prices.py:7", 1)
    assert (first["epoch"], first["replay"], first["delayMs"]) == (None, None, 1)
    assert (second["line"], second["epoch"], second["restart"]) == ("prices.py:8", 12, 2)
    assert second["replay"] == "opchain replay --epoch 12 place prices.py"
    assert second["vertex"] == epochs.job.vertices[0].vertex_id
    assert second["lines"] == [
        "in 'price' (prices.py:8), at record 1",
        f"in task {epochs.job.vertices[0].name} (1/1)#0",
        "in epoch 12; if it is started again, the job resumes from place/chk-11",
    ]
    assert update["status"] == "created", "the job has not failed"
    let_go.set()
    epochs.close()


def test_job_watch_reports_settings_by_key(tmp_path: Path) -> None:
    epochs, _, started, _ = words(tmp_path)
    settings = {setting["key"]: setting for setting in settings_of(started)}
    assert settings["parallelism.default"]["value"] == "1"
    assert settings["execution.checkpointing.dir"]["isDefault"]
    assert [each["value"] for each in settings.values() if not each["isDefault"]] == ["words"]
    assert settings["pipeline.global-job-parameters"]["value"] == ""
    epochs.close()


def inverse(number: int) -> float:
    return 1 / number


def test_job_watch_reports_a_failure_with_lines_of_the_program() -> None:
    local = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(local)
    env.from_collection([0]).map(inverse).print()
    with pytest.raises(ZeroDivisionError) as raised:
        env.execute()
    lines = failure_values(raised.value)["lines"]
    assert any("1 / value" in line and "(test_page_updates.py:" in line for line in lines)
    assert not any("/runtime/" in line for line in lines)


class Stages:
    """Two of three tasks are done: the first, and one of the two behind it."""

    def finished_tasks(self) -> dict[int, TaskMetrics]:
        return {0: TASK, 2: replace(TASK, operators=TASK.operators * 2)}

    def running_tasks(self) -> dict[int, TaskMetrics]:
        return {1: replace(TASK, records_in=5, operators=TASK.operators * 2)}

    def stages(self) -> list[StageProgress]:
        return [StageProgress("read", 1, done=1), StageProgress("count", 2, running=1, done=1)]


def test_job_watch_reports_the_finished_tasks_of_a_bounded_job() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.from_collection([1]).rebalance().map(str).print()
    plan = compile_program(env.program())
    run = JobRun(JobOutcome, lambda: None, progress=Stages())
    update = next(JobWatch(StartedJob("job", run, plan)).updates())
    assert update is not None
    assert update["tasks"] == {"done": 2, "all": 3}
    assert list(update["states"].values()) == ["finished", "running"]
    assert [vertex["recordsIn"] for vertex in update["numbers"].values()] == [3, 3 + 5]
    assert [len(vertex["subtasks"]) for vertex in update["numbers"].values()] == [1, 2]


def test_job_watch_reports_the_metrics_of_a_bounded_job_at_its_end() -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([1, 2, 3]).print()
    with watching_jobs() as jobs:
        env.execute("numbers")
    update = next(JobWatch(jobs[0]).updates())
    assert update is not None
    assert (update["status"], update["isOver"]) == ("finished", True)
    assert sum(vertex["recordsIn"] for vertex in update["numbers"].values()) == 3
