"""Savepoints of a running job: from other processes, by its client, and resuming from them."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Time, TimestampAssigner, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import CheckpointError, UnsupportedFeatureError
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.run import CancelledError
from opchain.runtime.spark.streaming.streaming_job import StreamingJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

LONGEST_S = 400
FEW = 100


class ValueAsTime(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class Count(KeyedProcessFunction[int, int, tuple[int, int]]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int]]:
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


def counts(
    checkpoints: Path, parallelism: int, restore_from: Path | str | None = None, **settings: str
) -> Any:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(checkpoints))
    if restore_from is not None:
        configuration.set_string("execution.state-recovery.path", str(restore_from))
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.set_max_parallelism(16)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=100)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    return stream.key_by(lambda n: n % 5).process(Count()).uid("counts")


def resumed(
    folder: Path, parallelism: int, savepoint: Path, **settings: str
) -> list[tuple[int, int]]:
    """The first records of a job that starts from a savepoint."""
    found = []
    with counts(folder, parallelism, savepoint, **settings).execute_and_collect() as records:
        for record in records:
            found.append(record)
            if len(found) >= FEW:
                break
    return found


def counts_on_from(records: list[tuple[int, int]], position: int) -> bool:
    """Whether these are the first records after a position, each counted once."""
    by_key: dict[int, list[int]] = {}
    for value, count in records:
        by_key.setdefault(value % 5, []).append(count)
    return (
        len({value for value, _ in records}) == len(records)
        and min(value for value, _ in records) >= position
        and all(
            sorted(found) == list(range(before + 1, before + 1 + len(found)))
            for key, found in by_key.items()
            for before in [len(range(key, position, 5))]
        )
    )


def command(*arguments: object) -> subprocess.Popen[str]:
    """Runs the command line in its own process, which only knows the folder of the job."""
    return subprocess.Popen(
        [sys.executable, "-m", "opchain", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_savepoints_by_another_process_resume_at_another_parallelism(
    tmp_path: Path,
) -> None:
    job, running, stopped = tmp_path / "job", tmp_path / "running", tmp_path / "stopped"
    found: list[tuple[int, int]] = []
    taken = ended = None
    with counts(job, 2).execute_and_collect("counts") as records:
        for record in records:
            found.append(record)
            if len(found) >= FEW and taken is None:
                taken = command("savepoint", job, running)
            if taken is not None and taken.poll() is not None and ended is None:
                ended = command("stop", job, stopped)
    assert taken is not None
    assert ended is not None
    assert (taken.communicate()[0], taken.returncode) == (f"savepoint {running}\n", 0)
    assert (ended.communicate()[0], ended.returncode) == (f"stopped with savepoint {stopped}\n", 0)
    behind = len(found)
    assert sorted(value for value, _ in found) == list(range(behind))
    assert counts_on_from(found, 0)
    assert counts_on_from(resumed(tmp_path / "second", 3, stopped), behind)
    from_running = resumed(tmp_path / "third", 1, running)
    assert any(counts_on_from(from_running, position) for position in range(FEW, behind + 1))


def test_the_client_takes_savepoints_and_a_second_stop_is_refused(tmp_path: Path) -> None:
    stream = counts(
        tmp_path / "job", 1, **{"execution.checkpointing.savepoint-dir": str(tmp_path / "saved")}
    )
    stream.print()
    client = stream.get_execution_environment().execute_async("client")
    first = client.trigger_savepoint().result(LONGEST_S)
    second = client.trigger_savepoint(str(tmp_path / "elsewhere")).result(LONGEST_S)
    assert first.startswith(str(tmp_path / "saved" / "savepoint-"))
    assert second.startswith(str(tmp_path / "elsewhere" / "savepoint-"))
    stop = client.stop_with_savepoint(True)
    with pytest.raises(
        CheckpointError, match=r"request \w+ already stops the job \(stop, drained\)"
    ):
        client.stop_with_savepoint(False).result(LONGEST_S)
    assert stop.result(LONGEST_S).startswith(str(tmp_path / "saved" / "savepoint-"))
    client.get_job_execution_result().result(LONGEST_S)
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.last_progress is not None
    assert client.last_progress.watermark == "end"
    with pytest.raises(CheckpointError, match="has ended"):
        client.trigger_savepoint().result(LONGEST_S)
    for savepoint in (first, second, stop.result()):
        shown = command("checkpoint", "verify", savepoint)
        assert "intact" in shown.communicate()[0]


def test_another_process_cancels_a_job(tmp_path: Path) -> None:
    stream = counts(tmp_path / "job", 1)
    stream.print()
    client = stream.get_execution_environment().execute_async("cancelled")
    with pytest.raises(CheckpointError, match="the savepoint has no directory"):
        client.trigger_savepoint().result(LONGEST_S)
    cancelled = command("cancel", tmp_path / "job")
    assert cancelled.communicate()[0] == "cancelled\n"
    assert client.get_job_execution_result().exception() is not None
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_a_cancellation_concurrent_with_the_start_of_an_epoch_does_not_deadlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cancel` holds the lock and waits for the query, whose epoch then requests the lock."""
    run_epoch, locks = StreamingJob._run_epoch, []
    cancel_waits_for_the_query, epoch_waits = threading.Event(), threading.Event()

    class Query:
        def __init__(self, query: Any) -> None:
            self._query = query

        def stop(self) -> None:
            cancel_waits_for_the_query.set()
            self._query.stop()

    def meeting_a_cancellation(self: StreamingJob, epochs: Any, rows: Any, batch: int) -> None:
        if batch == 1:
            locks.append(self._between_epochs)
            self._query = Query(self._query)  # type: ignore[assignment]
            epoch_waits.set()
            assert cancel_waits_for_the_query.wait(LONGEST_S)
        run_epoch(self, epochs, rows, batch)

    monkeypatch.setattr(StreamingJob, "_run_epoch", meeting_a_cancellation)
    stream = counts(tmp_path / "job", 1)
    stream.print()
    client = stream.get_execution_environment().execute_async("cancelled")
    assert epoch_waits.wait(LONGEST_S)
    cancellation = threading.Thread(target=client.cancel)
    cancellation.start()
    cancellation.join(60)
    is_stuck = cancellation.is_alive()
    if is_stuck:
        locks[0].release()
    assert not is_stuck
    with pytest.raises(CancelledError):
        client.get_job_execution_result().result(60)


def checkpoint_files(folder: Path) -> list[str]:
    kept = ("runs", "requests")
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if path.parts[0] not in kept and path.name[0] != "."]


@pytest.mark.parametrize("retention", ["DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"])
def test_checkpoints_of_a_cancelled_job_are_deleted_or_kept(tmp_path: Path, retention: str) -> None:
    key = "execution.checkpointing.externalized-checkpoint-retention"
    with counts(tmp_path / "job", 1, **{key: retention}).execute_and_collect() as records:
        next(records)
    assert bool(checkpoint_files(tmp_path / "job")) == (retention == "RETAIN_ON_CANCELLATION")
    if retention == "DELETE_ON_CANCELLATION":
        with counts(tmp_path / "job", 1).execute_and_collect() as records:
            assert next(records)[0] == 0  # the job starts over


class HangsOnce(KeyedProcessFunction[int, int, int]):
    """The first time, does not return from the first record after the tenth."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        if value > 10 and not self.marker.exists():
            self.marker.touch()
            threading.Event().wait()
        yield value


def test_a_checkpoint_that_times_out_fails_and_its_epoch_is_run_again(tmp_path: Path) -> None:
    settings = {
        "execution.checkpointing.timeout": "60 s",
        "execution.checkpointing.tolerable-failed-checkpoints": "1",
    }
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    epochs: list[Any] = []
    env.add_epoch_listener(epochs.append)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=100)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
    hangs = stream.key_by(lambda n: 0).process(HangsOnce(tmp_path / "marker"))
    found = []
    with hangs.execute_and_collect("expires") as records:
        for record in records:
            found.append(record)
            if len(found) > FEW:
                break
    assert found == list(range(len(found)))
    assert [reason for epoch in epochs for reason in epoch.declined] == ["CHECKPOINT_EXPIRED"]


def bounded_counts(
    values: list[int], parallelism: int, **settings: str
) -> tuple[list[tuple[int, int]], list[int]]:
    """The results of a bounded job: counts by the last digit, and sums of windows of 100 ms by the values as time."""
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.set_max_parallelism(16)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ValueAsTime())
    numbers = env.from_collection(values).assign_timestamps_and_watermarks(strategy)
    counted = numbers.key_by(lambda n: n % 5).process(Count()).uid("counts")
    sums = (
        numbers.key_by(lambda n: 0)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        .reduce(lambda a, b: a + b)
        .uid("sums")
    )
    both = counted.map(lambda pair: ("count", pair)).union(sums.map(lambda n: ("sum", n)))
    with both.execute_and_collect("bounded") as records:
        found = list(records)
    return (
        sorted(pair for kind, pair in found if kind == "count"),
        [value for kind, value in found if kind == "sum"],
    )


def test_a_bounded_job_saves_its_state_for_bounded_and_unbounded_jobs(tmp_path: Path) -> None:
    saved = str(tmp_path / "saved")
    counted, sums = bounded_counts(list(range(10)), 2, **{"opchain.savepoint-at-end": saved})
    assert counted == [(n, n // 5 + 1) for n in range(10)]
    assert sums == []  # the window is open, and stays open
    counted, sums = bounded_counts(
        list(range(10, 20)), 3, **{"execution.state-recovery.path": saved}
    )
    assert counted == [(n, n // 5 + 1) for n in range(10, 20)]
    assert sums == [sum(range(20))]
    live = resumed(
        tmp_path / "live",
        1,
        tmp_path / "saved",
        **{"execution.state-recovery.ignore-unclaimed-state": "true"},
    )
    by_key = {key: [count for value, count in live if value % 5 == key] for key in range(5)}
    assert {min(found) for found in by_key.values()} == {3}
    assert min(value for value, _ in live) == 0


def test_a_savepoint_at_the_end_is_refused_for_jobs_that_cannot_have_one(tmp_path: Path) -> None:
    setting = {"opchain.savepoint-at-end": str(tmp_path / "saved")}
    with pytest.raises(UnsupportedFeatureError, match=r"set execution.runtime-mode = STREAMING"):
        bounded_counts([1], 1, **setting, **{"execution.runtime-mode": "BATCH"})
    with pytest.raises(UnsupportedFeatureError, match=r"never ends.*opchain stop"):
        counts(tmp_path / "job", 1, **setting).execute_and_collect()
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "file").write_text("here", "utf-8")
    with pytest.raises(CheckpointError, match="is not empty"):
        bounded_counts([1], 1, **setting)
