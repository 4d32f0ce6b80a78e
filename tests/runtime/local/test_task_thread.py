"""TaskThread, and functions that do not return."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of

from opchain.common import Encoder, Types, WatermarkStrategy
from opchain.datastream.connectors import DataGeneratorSource
from opchain.datastream.connectors.file_system import FileSink
from opchain.datastream.functions import MapFunction
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.streaming_settings import StreamingSettings
from opchain.runtime.job.unbounded_job import UnboundedRun
from opchain.runtime.local import live_run, task_thread
from opchain.runtime.local.epoch_run import LocalEpochJob
from opchain.runtime.local.job import local_run
from opchain.runtime.local.task_thread import JobStoppedError, TaskThread, end_threads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opchain.runtime.job.run import JobRun

LONGEST_S = 30


@pytest.fixture
def no_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped job waits no time for its threads."""
    monkeypatch.setattr(live_run, "ENDING_S", 0.0)
    monkeypatch.setattr(task_thread, "INTERRUPTED_S", 0.1)
    monkeypatch.setattr(TaskThread.stop, "__defaults__", (0.0,))


class Blocker:
    """A call in C code that does not return, so that Python cannot interrupt it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._released = threading.Lock()
        self._released.acquire()

    def __call__(self) -> str:
        self.entered.set()
        self._released.acquire()
        return "late"

    def release(self) -> None:
        self._released.release()


def busy(entered: threading.Event) -> None:
    while True:
        entered.set()


def test_calls_and_the_clean_up_run_in_one_thread() -> None:
    cleaned: list[int] = []
    thread = TaskThread(lambda: cleaned.append(threading.get_ident()))
    first, second = thread.run(threading.get_ident), thread.run(threading.get_ident)
    thread.close()
    assert first == second != threading.get_ident()
    assert cleaned == [first]


def test_an_exception_of_a_call_is_raised_in_the_caller() -> None:
    thread = TaskThread(lambda: None)
    with pytest.raises(ZeroDivisionError):
        thread.run(lambda: 1 // 0)
    assert thread.run(lambda: 1) == 1
    thread.close()


def test_stopping_between_two_calls_does_nothing() -> None:
    thread = TaskThread(lambda: None)
    thread.stop(0.0)
    thread.run(lambda: None)
    thread.stop(0.0)
    assert thread.run(lambda: 2) == 2
    thread.close()


def test_a_loop_in_python_is_interrupted() -> None:
    entered = threading.Event()
    thread = TaskThread(lambda: None)
    threading.Thread(target=lambda: (entered.wait(), thread.stop(0.0))).start()
    with pytest.raises(JobStoppedError):
        thread.run(lambda: busy(entered))
    assert not thread.is_abandoned
    assert thread.run(lambda: 1) == 1
    thread.close()


@pytest.mark.usefixtures("no_grace_period")
def test_a_call_that_cannot_be_interrupted_is_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    call, cleaned = Blocker(), threading.Event()
    thread = TaskThread(cleaned.set)
    threading.Thread(target=lambda: (call.entered.wait(), thread.stop(0.0))).start()
    with pytest.raises(JobStoppedError):
        thread.run(call)
    assert thread.is_abandoned
    assert "does not return" in caplog.text
    assert "self._released.acquire()" in caplog.text
    thread.close()
    assert not cleaned.is_set()
    call.release()
    assert cleaned.wait(LONGEST_S)


@pytest.mark.usefixtures("no_grace_period")
def test_threads_that_do_not_end_are_interrupted_and_then_abandoned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    entered, call = threading.Event(), Blocker()
    stopped = threading.Event()

    def loop() -> None:
        try:
            busy(entered)
        except JobStoppedError:
            stopped.set()

    def block() -> None:
        with suppress(JobStoppedError):
            call()

    threads = [
        threading.Thread(target=target, name=name, daemon=True)
        for name, target in (("task 1", loop), ("task 2", block))
    ]
    for thread in threads:
        thread.start()
    assert entered.wait(LONGEST_S)
    assert call.entered.wait(LONGEST_S)
    end_threads(threads, 0.0)
    assert stopped.wait(LONGEST_S)
    assert [text for text in ("'task 1'", "'task 2'") if text in caplog.text] == ["'task 2'"]
    call.release()


blockers: dict[str, Blocker] = {}


@pytest.fixture
def blocker(tmp_path: Path) -> Iterator[Blocker]:
    """Blocks the function of the `blocking` program."""
    found = blockers[str(tmp_path)] = Blocker()
    yield found
    found.release()


class BlocksAtFive(MapFunction[int, int]):
    """Does not return from the sixth record."""

    def __init__(self, name: str) -> None:
        self.name = name

    def map(self, value: int) -> int:
        if value == 5:
            blockers[self.name]()
        return value


def blocked(env: Any, name: str, count: int | None) -> Any:
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda index: index, count, 1000)
    strategy = WatermarkStrategy.no_watermarks()
    return env.from_source(numbers, strategy, "numbers").uid("numbers").map(BlocksAtFive(name))


def blocking(env: Any, name: str, count: int | None) -> None:
    blocked(env, name, count).print()


def require_cancelled(run: JobRun, blocker: Blocker) -> None:
    assert blocker.entered.wait(LONGEST_S)
    run.cancel().result(LONGEST_S)
    assert run.get_job_status().result() is JobStatus.CANCELED


@pytest.mark.usefixtures("no_grace_period")
@pytest.mark.parametrize("count", [None, 10])
def test_a_job_whose_function_blocks_can_be_cancelled(
    tmp_path: Path, blocker: Blocker, count: int | None
) -> None:
    job = job_of(lambda env: blocking(env, str(tmp_path), count))
    require_cancelled(local_run(job).start(), blocker)


def visible(out: Path) -> list[str]:
    """The lines of all committed part files."""
    found = (path for path in out.rglob("*") if path.is_file() and ".opchain" not in path.parts)
    return sorted(line for path in found for line in path.read_text("utf-8").split())


@pytest.mark.usefixtures("no_grace_period")
@pytest.mark.parametrize("count", [None, 10])
def test_an_abandoned_thread_writes_no_output_when_its_function_returns(
    tmp_path: Path, blocker: Blocker, monkeypatch: pytest.MonkeyPatch, count: int | None
) -> None:
    monkeypatch.setattr(LocalEpochJob.cancel, "__defaults__", (0.0,))
    out = tmp_path / "out"

    def draw(env: Any) -> None:
        numbers = blocked(env, str(tmp_path), count).map(str, Types.STRING())
        numbers.sink_to(FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build())

    job = job_of(draw)
    settings = StreamingSettings(
        checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=100
    )
    run: Any = local_run(job) if count else UnboundedRun(LocalEpochJob(job, settings))  # type: ignore[arg-type]
    before = set(threading.enumerate())
    require_cancelled(run.start(), blocker)
    abandoned = [each for each in threading.enumerate() if each not in before and each.daemon]
    assert abandoned
    before_release = visible(out)
    blocker.release()
    for thread in abandoned:
        thread.join(LONGEST_S)
        assert not thread.is_alive()
    assert visible(out) == before_release
    assert "5" not in before_release  # the function has not returned for this record


@pytest.mark.usefixtures("no_grace_period")
def test_a_job_with_checkpoints_whose_function_blocks_can_be_cancelled(
    tmp_path: Path, blocker: Blocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalEpochJob.cancel, "__defaults__", (0.0,))
    settings = StreamingSettings(checkpoint_dir=str(tmp_path / "checkpoints"))
    job = job_of(lambda env: blocking(env, str(tmp_path), None))
    require_cancelled(UnboundedRun(LocalEpochJob(job, settings)).start(), blocker)  # type: ignore[arg-type]
