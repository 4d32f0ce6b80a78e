from __future__ import annotations

import threading
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from forms import Ran, job_of, notes_of, run_job, seen

from opchain.common import Configuration, WatermarkStrategy
from opchain.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from opchain.datastream.functions import SourceFunction
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.job.client import JobStatus
from opchain.runtime.local import live_run
from opchain.runtime.local.job import local_run
from opchain.runtime.local.live_run import LiveRun, StopSwitch
from opchain.runtime.shipping.outcome import read_outcome
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 60
NONE = WatermarkStrategy.no_watermarks()


def endless(env: StreamExecutionEnvironment, function: Any = int) -> Any:
    return env.from_source(DataGeneratorSource(function), NONE, "numbers")


def run_live(draw: Any, **settings: Any) -> Ran:
    """Runs a bounded job as an unbounded one."""
    job = job_of(draw, **settings)
    live = LiveRun(job, TaskEnvironment(), StopSwitch())
    return Ran(job, read_outcome(job, live.buffers()))


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_bounded_job_run_as_unbounded_gives_the_same_records(parallelism: int) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(1, 500)
        counted = numbers.map(lambda n: (n % 7, 1)).key_by(lambda pair: pair[0])
        seen(counted.reduce(lambda a, b: (a[0], a[1] + b[1])), "counts")
        seen(numbers.union(env.from_collection([1000]).rebalance()), "all")

    ran = run_live(draw, parallelism=parallelism)
    assert sorted(ran.records("all")) == [*range(1, 501), 1000]
    counts = ran.records("counts")
    assert len(counts) == 500
    assert sum(count == 72 for _, count in counts) == 3  # 500 = 7 * 71 + 3


def test_the_last_watermark_fires_all_timers() -> None:
    class AtTheEnd(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(value)
            return ()

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp

    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 20).key_by(lambda n: n % 3).process(AtTheEnd()), "out")

    assert sorted(run_live(draw, parallelism=2).records("out")) == list(range(1, 21))


enough = threading.Semaphore(0)


def notice(value: Any) -> Any:
    enough.release()
    return value


def test_an_unbounded_job_emits_results_until_it_is_cancelled(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def draw(env: Any) -> None:
        counted = endless(env).key_by(lambda n: n % 2).map(notice)
        counted.filter(lambda n: n < 10).print()

    job = job_of(draw)
    assert [source.name for source in job.endless_sources] == ["Source: numbers"]
    run = local_run(job).start()
    for _ in range(20):
        assert enough.acquire(timeout=PATIENCE_S)
    run.cancel().result(PATIENCE_S)
    assert run.get_job_status().result() is JobStatus.CANCELED
    assert sorted(map(int, capfd.readouterr().out.split())) == list(range(10))


def test_the_first_failure_ends_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_run, "ENDING_S", PATIENCE_S)
    before = threading.enumerate()

    def fail(value: int) -> int:
        if value == 50:
            raise ValueError("fifty")
        return value

    def draw(env: Any) -> None:
        seen(endless(env).rebalance().map(fail), "out")

    run = local_run(job_of(draw, parallelism=2)).run_here()
    with pytest.raises(ValueError, match="fifty") as raised:
        run.get_job_execution_result().result()
    assert "at record 50" in notes_of(raised.value)
    started = [thread for thread in threading.enumerate() if thread not in before]
    assert not [thread for thread in started if thread.name.startswith("task ")]


def test_a_bounded_job_has_no_unbounded_sources() -> None:
    assert job_of(lambda env: env.from_sequence(1, 2).print()).endless_sources == []


class Ticks(SourceFunction[int]):
    """Emits twelve numbers, and then waits until it is cancelled."""

    def open(self, runtime_context: Any) -> None:
        self.cancelled = threading.Event()

    def run(self, ctx: Any) -> None:
        for number in range(12):
            ctx.collect(number)
        self.cancelled.wait()

    def cancel(self) -> None:
        self.cancelled.set()


@pytest.mark.parametrize("timeout_ms", [0, 50])
def test_records_of_a_source_function_are_emitted_while_it_runs(
    timeout_ms: int, tmp_path: Path
) -> None:
    def arrive(number: int) -> int:
        (tmp_path / str(number)).touch()
        return number

    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_configuration().set_string("execution.target", "local")
    env.set_buffer_timeout(timeout_ms)
    env.add_source(Ticks(), "ticks").rebalance().map(arrive).print()
    client = env.execute_async("ticks")
    until = time.monotonic() + PATIENCE_S
    while len(list(tmp_path.iterdir())) < 12 and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == list(range(12))
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel().result(PATIENCE_S)


class Endless(Ticks):
    is_bounded = False


def test_an_unbounded_source_function_is_refused_on_spark() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_source(Endless(), "ticks").print()
    with pytest.raises(UnsupportedFeatureError, match=r"'Source: ticks' .* never ends"):
        env.execute("ticks")


def test_a_task_is_idle_while_its_source_waits() -> None:
    def draw(env: Any) -> None:
        slow = DataGeneratorSource(int, count=4, records_per_second=10)
        seen(env.from_source(slow, NONE, "numbers"), "all")

    for ran in (run_live(draw), run_job(job_of(draw))):
        assert ran.records("all") == [0, 1, 2, 3]
        (vertex,) = (found for found in ran.outcome.metrics.vertices if "numbers" in found.name)
        assert vertex.idle_time_ms_per_second > 500 > vertex.busy_time_ms_per_second


def test_a_processing_time_timer_fires_between_the_records_of_a_batch() -> None:
    """A record takes a millisecond, a batch 3 seconds, and the timer is due after 100 milliseconds."""

    class Slow(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.processed = 0

        def process_element(self, value: Any, ctx: Any) -> Any:
            if not self.processed:
                clock = ctx.timer_service()
                clock.register_processing_time_timer(clock.current_processing_time() + 100)
            self.processed += 1
            until = time.monotonic() + 0.001
            while time.monotonic() < until:
                pass
            return ()

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield self.processed

    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 3000).key_by(lambda n: 0).process(Slow()), "fired")

    job = job_of(draw, mode="STREAMING")
    (processed,) = run_job(job).records("fired")
    assert processed < 1500


def endless_env() -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def test_collected_records_can_be_read_while_the_job_runs() -> None:
    with endless(endless_env()).map(lambda n: [n]).execute_and_collect() as records:
        assert list(islice(records, 3)) == [[0], [1], [2]]


def test_collected_records_end_with_the_error_of_the_job() -> None:
    def inverse(number: int) -> float:
        return 1 / (10_000 - number)

    with endless(endless_env()).map(inverse).execute_and_collect() as records:
        assert next(records) == 1 / 10_000
        with pytest.raises(ZeroDivisionError):
            list(records)


def test_each_of_several_collected_streams_is_read_to_its_end() -> None:
    env = endless_env()

    class Counts(SourceFunction):  # type: ignore[misc]
        def run(self, ctx: Any) -> None:
            for number in range(500):
                ctx.collect(number)

        def cancel(self) -> None:
            pass

    numbers = env.add_source(Counts())
    read = [numbers.collect_async(), numbers.map(str).collect_async()]
    env.execute("two")
    assert [len(list(records)) for records in read] == [500, 500]
