from __future__ import annotations

import os
import re
import signal
import sys
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import pytest
from forms import Ran, job_of, run_job, seen

from opchain.common import Encoder, Types
from opchain.datastream import (
    FlatMapFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from opchain.datastream.connectors.file_system import FileSink
from opchain.runtime.errors import (
    KeyTypeError,
    TaskFailedError,
    UnpicklableFunctionError,
    UnpicklableRecordError,
)
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.run import CancelledElsewhereError
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.spark import bounded_job
from opchain.runtime.spark.bounded_job import BoundedJob, spark_run
from opchain.runtime.spark.remote_error import ExecutorTracebackError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]


class PriceError(Exception):
    def __init__(self, item: str, price: int) -> None:
        super().__init__(f"{item} costs {price}")
        self.price = price


def run(job: Any) -> Ran:
    return Ran(job, spark_run(job)._run())


def failure(draw: Any, **settings: Any) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - the tests check it
        run(job_of(draw, **settings))
    return caught.value


def words(env: Any) -> Any:
    text = ["to be or not to be", "that is the question"] * 50
    return (
        env.from_collection(text)
        .rebalance()
        .flat_map(str.split)
        .key_by(lambda word: word)
        .map(lambda word: (word, 1))
    )


def test_a_job_gives_the_same_records_as_in_this_process() -> None:
    def draw(env: Any) -> None:
        counts = words(env).key_by(lambda pair: pair[0])
        counts = counts.reduce(lambda one, other: (one[0], one[1] + other[1]))
        seen(counts, "counts")
        seen(counts.rebalance().filter(lambda pair: pair[1] % 2 == 0), "even")

    job = job_of(draw, parallelism=3)
    on_spark, here = run(job), run_job(job)
    for name in ("counts", "even"):
        assert on_spark.subtasks(name) == here.subtasks(name)
    assert on_spark.counters() == here.counters()


def test_buffers_are_passed_through_intermediate_stages() -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(1, 1000)
        long_way = numbers.rebalance().map(lambda x: -x).rebalance().map(lambda x: x)
        seen(long_way.union(numbers).rebalance().map(lambda x: x), "all")

    job = job_of(draw, parallelism=2)
    assert len(job.stages) > 3
    on_spark = run(job)
    assert sorted(on_spark.records("all")) == sorted([*range(1, 1001), *range(-1000, 0)])
    assert on_spark.subtasks("all") == run_job(job).subtasks("all")


def spark_run_session() -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    active = SparkSession.getActiveSession()
    assert active is not None
    return active


# Errors of jobs


@pytest.mark.parametrize("form", ["interpreted", "generated"])
def test_an_error_of_a_user_function_is_raised_with_its_type_and_place(form: str) -> None:
    def check(item: str) -> str:
        if item == "ham":
            raise PriceError(item, 7)
        return item

    error = failure(
        lambda env: env.from_collection(["egg", "ham"]).rebalance().map(check).name("till").print(),
        form=form,
    )
    assert type(error) is PriceError
    assert error.price == 7
    assert str(error) == "ham costs 7"
    notes = error.__notes__  # type: ignore[attr-defined]
    assert any(
        "in 'till' (test_bounded_job.py:" in note and "at record 'ham'" in note for note in notes
    )
    assert any("till" in note and note.startswith("in task ") for note in notes)
    assert isinstance(error.__cause__, ExecutorTracebackError)
    assert "check" in str(error.__cause__)
    assert "<opchain error" not in str(error.__cause__)


def _raised(error: BaseException) -> None:
    raise error


def _early(number: int) -> int:
    if number > 10_000:
        raise ValueError(number)
    return number


def test_a_source_stops_if_a_limited_number_of_records_is_read() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_sequence(1, 10**9).set_parallelism(1).map(_early)
    assert numbers.execute_and_collect(limit=3) == [1, 2, 3]


class Bad:
    def __reduce__(self) -> Any:
        raise TypeError("I stay here")

    def __repr__(self) -> str:
        return "Bad()"


@pytest.mark.parametrize(
    ("draw", "kind", "message"),
    [
        (
            lambda env: env.from_collection([1]).map(lambda _: Bad()).rebalance().map(str).print(),
            UnpicklableRecordError,
            r"'Map' \(test_bounded_job.py:\d+\).*the record Bad\(\) cannot be pickled.*I stay here",
        ),
        (
            lambda env: env.from_collection([1]).map(lambda _: Bad()).collect_async(),
            UnpicklableRecordError,
            r"the record Bad\(\) cannot be pickled",
        ),
        (
            lambda env: (
                env.from_collection([1]).key_by(lambda _: "x", Types.INT()).reduce(max).print()
            ),
            KeyTypeError,
            r"test_bounded_job.py",
        ),
        (
            lambda env: env.from_collection([1]).map(sys.exit).print(),
            TaskFailedError,
            r"called sys.exit\(1\)",
        ),
        (
            lambda env: env.from_collection([KeyboardInterrupt("stop")]).map(_raised).print(),
            TaskFailedError,
            r"KeyboardInterrupt: stop\nin 'Map' \(test_bounded_job.py:\d+\)",
        ),
        (
            lambda env: env.from_collection([GeneratorExit()]).map(_raised).print(),
            TaskFailedError,
            r"a function raised GeneratorExit, .*\nin 'Map' \(test_bounded_job.py:\d+\)",
        ),
        (
            lambda env: env.from_collection([1]).flat_map(lambda _: None).print(),
            TypeError,
            "not iterable",
        ),
    ],
    ids=["record", "collected record", "key", "exit", "interrupt", "generator exit", "none"],
)
def test_the_error_names_invalid_input(draw: Any, kind: type[Exception], message: str) -> None:
    error = failure(draw)
    assert type(error) is kind or isinstance(error, kind)
    assert re.search(message, "\n".join([str(error), *getattr(error, "__notes__", ())]))


def test_an_unpicklable_function_fails_before_the_job_runs() -> None:
    lock = threading.Lock()
    job = job_of(lambda env: env.from_collection([1]).map(lambda x: (x, lock)).print())
    with pytest.raises(UnpicklableFunctionError, match="captured variable 'lock'"):
        spark_run(job)


# Killed processes


class DiesAtFirst(MapFunction[int, int]):
    """Ends its process after some records in the first attempts of one subtask."""

    def __init__(self, marks: Path, deaths: int, how: str) -> None:
        self.marks = marks
        self.deaths = deaths
        self.how = how
        self.seen = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.is_victim = runtime_context.get_index_of_this_subtask() == 1

    def map(self, value: int) -> int:
        self.seen += 1
        if self.is_victim and self.seen == 3 and len(list(self.marks.iterdir())) < self.deaths:
            (self.marks / str(os.getpid())).touch()
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.how == "exit":
                os._exit(1)
            raise RuntimeError("once")
        return value


@pytest.mark.parametrize("how", ["kill", "exit", "raise"])
def test_a_killed_process_is_replaced_without_loss(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw(deaths: int) -> Any:
        def drawn(env: Any) -> None:
            numbers = env.from_sequence(1, 500).rebalance().map(DiesAtFirst(tmp_path, deaths, how))
            sums = numbers.key_by(lambda x: x % 7).reduce(lambda a, b: a + b)
            seen(sums, "sums")
            numbers.filter(lambda x: x > 490).print()

        return drawn

    disturbed = run(job_of(draw(2), parallelism=2))
    assert len(list(tmp_path.iterdir())) == 2
    printed = capsys.readouterr().out.splitlines()
    undisturbed = run(job_of(draw(0), parallelism=2))
    assert disturbed.subtasks("sums") == undisturbed.subtasks("sums")
    assert disturbed.counters() == undisturbed.counters()
    assert capsys.readouterr().out.splitlines() == printed
    assert sorted(int(line[3:]) for line in printed) == list(range(491, 501))


def test_a_process_that_always_dies_fails_the_job_and_names_the_operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw(env: Any) -> None:
        env.from_sequence(1, 100).rebalance().map(DiesAtFirst(tmp_path, 99, "exit")).name(
            "fatal"
        ).print()

    error = failure(draw, parallelism=2)
    assert type(error) is TaskFailedError
    assert (
        "task fatal -> Sink: Print to Std. Out (2/2), in each of its 3 attempts, lost its"
        in str(error)
    )
    assert capsys.readouterr().out == ""


# Effects outside of the job


def test_a_failed_job_commits_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commits: list[Any] = []
    monkeypatch.setattr(bounded_job, "commit", lambda *given: commits.append(given))

    def fail_late(value: int) -> int:
        if value == 100:
            raise ValueError("late")
        return value

    def draw(env: Any) -> None:
        numbers = env.from_sequence(1, 100)
        numbers.print()
        seen(numbers.rebalance().map(fail_late), "s")

    assert type(failure(draw, parallelism=2)) is ValueError
    assert commits == []
    assert capsys.readouterr().out == ""


def test_the_driver_prints_lines_ordered_by_task(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def draw(env: Any) -> None:
        env.from_sequence(1, 6).rebalance().map(lambda x: x).print("out")

    run(job_of(draw, parallelism=2))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("> ")[0] for line in lines] == ["out:1"] * 3 + ["out:2"] * 3
    assert sorted(int(line.split("> ")[1]) for line in lines) == [1, 2, 3, 4, 5, 6]


def test_the_settings_of_the_session_are_restored(session: SparkSession) -> None:
    context = session.sparkContext
    context.setJobGroup("mine", "my own jobs")
    context.setLocalProperty("spark.scheduler.pool", "pool")
    names = (
        *("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"),
        *("spark.scheduler.pool", "callSite.short", "callSite.long"),
    )
    session.range(1).collect()  # Spark chooses the folder of its tables now
    path, settings = sys.path[:], context.getConf().getAll()
    before = {name: context.getLocalProperty(name) for name in names}
    interpreter = context.pythonExec
    run(job_of(lambda env: env.from_collection([1]).rebalance().map(str).print()))
    failure(lambda env: env.from_collection([1]).map(lambda _: 1 / 0).print())
    assert {name: context.getLocalProperty(name) for name in names} == before
    assert (sys.path, context.getConf().getAll(), context.pythonExec) == (
        path,
        settings,
        interpreter,
    )
    for name in names:
        context.setLocalProperty(name, None)  # type: ignore[arg-type]


def test_a_job_calls_the_jvm_rarely(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gateway: Any = session.sparkContext._gateway
    client = type(gateway._gateway_client)
    send, commands = client.send_command, []

    def counted(self: Any, command: str, *arguments: Any, **named: Any) -> Any:
        if not command.startswith("m\nd\n"):  # garbage collection of Python
            commands.append(command)
        return send(self, command, *arguments, **named)

    monkeypatch.setattr(client, "send_command", counted)
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    run(job_of(lambda env: env.from_collection([1]).rebalance().map(str).sink_to(sink)))
    assert len(commands) < 140, "\n".join(commands)


# Monitoring and cancelling a job


class WaitsForAFile(FlatMapFunction[int, int]):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def flat_map(self, value: int) -> Any:
        (self.folder / "running").touch()
        while not (self.folder / "go").exists():
            threading.Event().wait(0.02)
        yield value


def test_a_cancelled_job_ends_and_other_jobs_continue(
    session: SparkSession, tmp_path: Path
) -> None:
    job = job_of(lambda env: env.from_collection([1]).flat_map(WaitsForAFile(tmp_path)).print())
    client = spark_run(job).start()
    while not (tmp_path / "running").exists():
        threading.Event().wait(0.02)
    assert client.get_job_status().result() is JobStatus.RUNNING
    other: list[int] = []
    thread = threading.Thread(
        target=lambda: other.append(session.sparkContext.parallelize([1, 2], 1).sum())
    )
    thread.start()
    client.cancel().result(240)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(CancelledError):
        client.get_job_execution_result().result()
    thread.join(240)
    assert other == [3]


def test_a_job_is_cancelled_with_all_jobs_of_spark(session: SparkSession, tmp_path: Path) -> None:
    """pyspark's handler of Ctrl-C cancels all jobs before it raises KeyboardInterrupt."""
    job = job_of(lambda env: env.from_collection([1]).flat_map(WaitsForAFile(tmp_path)).print())
    client = spark_run(job).start()
    while not (tmp_path / "running").exists():
        threading.Event().wait(0.02)
    session.sparkContext.cancelAllJobs()
    with pytest.raises(CancelledElsewhereError):
        client.get_job_execution_result().result(240)
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_a_job_that_is_cancelled_before_its_start_never_runs(tmp_path: Path) -> None:
    job = job_of(lambda env: env.from_collection([1]).flat_map(WaitsForAFile(tmp_path)).print())
    client = spark_run(job)
    client.cancel()
    client.run_here()
    assert client.get_job_status().result() is JobStatus.CANCELED
    assert not (tmp_path / "running").exists()


def test_spark_shows_the_names_of_the_job_graph(session: SparkSession) -> None:
    def draw(env: Any) -> None:
        env.from_collection([1]).name("numbers").rebalance().map(str).name("text").print()

    job = job_of(draw, parallelism=2)
    bounded = BoundedJob(session, job, ship_vertices(job))
    bounded.run()
    tracker = session.sparkContext.statusTracker()
    (number,) = tracker.getJobIdsForGroup(bounded.group)
    info = tracker.getJobInfo(number)
    assert info is not None
    names = [tracker.getStageInfo(stage).name for stage in sorted(info.stageIds)]  # type: ignore[union-attr]
    assert names == ["Source: numbers x1", "text -> Sink: Print to Std. Out x2"]


def test_python_processes_are_reused_for_later_tasks() -> None:
    def draw(env: Any) -> None:
        seen(
            env.from_sequence(1, 2).map(lambda _: os.getpid()).rebalance().map(lambda x: x), "pids"
        )

    job = job_of(draw, parallelism=2)
    assert len({pid for _ in range(4) for pid in run(job).records("pids")}) <= 2
