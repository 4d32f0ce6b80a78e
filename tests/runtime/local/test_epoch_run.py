"""Unbounded jobs with checkpoints in this process: failures, savepoints, changes of parallelism, cancellation."""

from __future__ import annotations

import errno
import queue
import re
import subprocess
import sys
import threading
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forms import job_of

from opchain.common import (
    Configuration,
    Duration,
    Encoder,
    Time,
    TimestampAssigner,
    Types,
    WatermarkStrategy,
)
from opchain.common.serialization import SimpleStringSchema
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    StreamFormat,
)
from opchain.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from opchain.datastream.functions import KeyedProcessFunction, MapPartitionFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.checkpoint.metadata import latest_checkpoint
from opchain.runtime.checkpoint.storage import LocalStorage, checkpoint_storage
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.connectors.outbox import OutboxSink
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.epochs.input_log import log_offset, required_offset
from opchain.runtime.epochs.source_positions import POSITIONS
from opchain.runtime.errors import CorruptCheckpointError, TaskFailedError
from opchain.runtime.functions.sink import Committer, Sink, SinkWriter
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.run import CancelledError
from opchain.runtime.job.streaming_settings import StreamingSettings
from opchain.runtime.job.unbounded_job import UnboundedRun
from opchain.runtime.local import epoch_run
from opchain.runtime.local.epoch_run import LocalEpochJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kafka_broker import Kafka

    from opchain.spark import EpochProgress

LONGEST_S = 120
KEYS = 5
NONE = WatermarkStrategy.no_watermarks()


class ValueAsTime(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class Count(KeyedProcessFunction[int, int, str]):
    """Counts records by key; calls `before` with each record, which may raise."""

    def __init__(self, before: Callable[[int], None] = lambda value: None) -> None:
        self.before = before

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int, int]]:
        self.before(value)
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value(), self.attempt


class FailsAtMost:
    """Fails at the records 40, 80, 120 and so on, up to a number of times; each failure leaves a file."""

    def __init__(self, folder: Path, most: int) -> None:
        self.folder = folder
        self.most = most

    def __call__(self, value: int) -> None:
        number = len(list(self.folder.glob("failure *")))
        if value >= 40 * (number + 1) and number < self.most:
            (self.folder / f"failure {number}").touch()
            raise ValueError(f"failure {number}")


def environment(
    folder: Path, settings: dict[str, Any] | None = None, parallelism: int = 1
) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
    for key, value in (settings or {}).items():
        configuration.set_string(key, str(value))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.set_max_parallelism(16)
    return env


RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "10 ms",
}


def never_fails(value: int) -> None:
    pass


def counts(env: StreamExecutionEnvironment, before: Callable[[int], None] = never_fails) -> Any:
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=400)
    stream = env.from_source(numbers, NONE, "numbers").uid("numbers")
    return stream.key_by(lambda n: n % KEYS).process(Count(before)).uid("counts")


def into_files(stream: Any, folder: Path) -> None:
    rows = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder())
    sink = rows.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    stream.map(lambda found: " ".join(map(str, found))).sink_to(sink).uid("files")


def written(folder: Path) -> list[tuple[int, ...]]:
    """The records in committed files, sorted."""
    return sorted(
        tuple(map(int, line.split()))
        for file in (folder / "out").rglob("*")
        if file.is_file() and not any(part[0] == "." for part in file.relative_to(folder).parts)
        for line in file.read_text("utf-8").splitlines()
    )


def require_exact(found: list[tuple[int, ...]]) -> None:
    """Each number is written once, and each key is counted without gaps."""
    assert [value for value, *_ in found] == list(range(len(found)))
    for key in range(KEYS):
        of_key = sorted(count for value, count, *_ in found if value % KEYS == key)
        assert of_key == list(range(1, len(of_key) + 1))


class Reached:
    """An epoch listener with which a test waits until a job has read a number of records."""

    def __init__(self, env: StreamExecutionEnvironment, records: int) -> None:
        self.left = records
        self.epochs: list[EpochProgress] = []
        self._is_there = threading.Event()
        env.add_epoch_listener(self)

    def __call__(self, epoch: EpochProgress) -> None:
        self.epochs.append(epoch)
        self.left -= epoch.records_in
        if self.left <= 0:
            self._is_there.set()

    def wait(self, client: Any = None) -> None:
        """Waits; if the job has failed, raises its error."""
        if client is not None:
            client.get_job_execution_result().add_done_callback(lambda _: self._is_there.set())
        assert self._is_there.wait(LONGEST_S)
        if client is not None and self.left > 0:
            client.get_job_execution_result().result()


def stop(client: Any, folder: Path, *, drain: bool = False) -> Any:
    """Stops a job with a savepoint; returns the savepoint when the job has ended."""
    savepoint = client.stop_with_savepoint(drain, str(folder / "saved")).result(LONGEST_S)
    assert client.get_job_status().result() is JobStatus.FINISHED
    return savepoint


def test_a_job_that_fails_three_times_writes_each_record_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment(tmp_path, RESTARTS, parallelism=2)
    reached = Reached(env, 200)
    into_files(counts(env, FailsAtMost(tmp_path, 3)), tmp_path)
    client = env.execute_async("fails three times")
    reached.wait()
    stop(client, tmp_path)
    found = written(tmp_path)
    assert len(found) >= 200
    require_exact(found)
    assert max(attempt for _, _, attempt in found) == 3  # the number of restarts
    assert len(re.findall(r"restart \d follows .*from its last checkpoint", caplog.text)) == 3


def test_without_a_restart_strategy_the_next_run_of_the_program_resumes(tmp_path: Path) -> None:
    env = environment(tmp_path)
    into_files(counts(env, FailsAtMost(tmp_path, 1)), tmp_path)
    client = env.execute_async("fails")
    with pytest.raises(ValueError, match="failure 0") as raised:
        client.get_job_execution_result().result(LONGEST_S)
    assert "if it is started again, the job " in " ".join(raised.value.__notes__)
    last = latest_checkpoint(checkpoint_storage(str(tmp_path / "checkpoints")))
    begun = len(list((tmp_path / "checkpoints" / "spark" / "offsets").glob("[0-9]*"))) - 1
    assert begun == (0 if last is None else last.checkpoint_id)
    logged = (tmp_path / "checkpoints" / "spark" / "offsets" / str(begun)).read_text("utf-8")
    env = environment(tmp_path)
    reached = Reached(env, 100)
    into_files(counts(env), tmp_path)
    client = env.execute_async("fails")
    reached.wait()
    stop(client, tmp_path)
    require_exact(written(tmp_path))
    again = (tmp_path / "checkpoints" / "spark" / "offsets" / str(begun)).read_text("utf-8")
    assert last is None or again == logged  # the failed epoch has read the same records


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_savepoint_of_a_running_job_resumes_at_another_parallelism(
    tmp_path: Path, parallelism: int
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    env = environment(first, parallelism=2)
    reached = Reached(env, 50)
    into_files(counts(env), tmp_path / "lost")
    client = env.execute_async("first")
    reached.wait()
    savepoint = client.trigger_savepoint(str(tmp_path / "saved")).result(LONGEST_S)
    stop(client, first)
    env = environment(second, {"execution.state-recovery.path": savepoint}, parallelism)
    reached = Reached(env, 100)
    into_files(counts(env), second)
    client = env.execute_async("second")
    reached.wait()
    stop(client, second)
    resumed = written(second)
    before = resumed[0][0]
    assert before >= 50  # the job continues, and so does its source
    assert [value for value, *_ in resumed] == list(range(before, before + len(resumed)))
    for key in range(KEYS):
        seen = len(range(key, before, KEYS))
        of_key = sorted(count for value, count, _ in resumed if value % KEYS == key)
        assert of_key == list(range(seen + 1, seen + 1 + len(of_key)))


def test_a_savepoint_is_resumed_after_the_output_was_archived(tmp_path: Path) -> None:
    def run(settings: dict[str, Any]) -> str:
        env = environment(tmp_path, settings)
        reached = Reached(env, 40)
        into_files(counts(env), tmp_path)
        client = env.execute_async("archived")
        reached.wait(client)
        savepoint: str = stop(client, tmp_path)
        return savepoint

    saved = run({})
    before = written(tmp_path)
    (tmp_path / "out").rename(tmp_path / "archive")
    (tmp_path / "checkpoints").rename(tmp_path / "old checkpoints")
    run({"execution.state-recovery.path": saved})
    require_exact(before + written(tmp_path))


PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = {tests!r}
from test_epoch_run import counts, environment, into_files
folder = Path({folder!r})
env = environment(folder, parallelism={parallelism})
into_files(counts(env), folder)
env.execute("killed")
"""


@pytest.mark.slow
def test_a_repeatedly_killed_process_writes_each_record_once(tmp_path: Path) -> None:
    folder, here = tmp_path / "job", Path(__file__).parent
    offsets = folder / "checkpoints" / "spark" / "offsets"
    for parallelism in (2, 1, 3):
        before = len(written(folder)) if folder.exists() else 0
        text = PROGRAM.format(
            tests=[str(here), str(here.parents[1])], folder=str(folder), parallelism=parallelism
        )
        with subprocess.Popen([sys.executable, "-c", text]) as process:
            deadline = time.monotonic() + LONGEST_S
            while not offsets.exists() or len(written(folder)) <= before + 50:
                assert process.poll() is None
                assert time.monotonic() < deadline
            process.kill()
    env = environment(folder)
    reached = Reached(env, 50)
    into_files(counts(env), folder)
    client = env.execute_async("killed")
    reached.wait(client)
    stop(client, folder)
    require_exact(written(folder))


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the command line in its own process, which only knows the folder of the job."""
    return subprocess.run(
        [sys.executable, "-m", "opchain", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )


@pytest.mark.slow
def test_another_process_takes_savepoints_and_cancels_the_job(tmp_path: Path) -> None:
    env = environment(tmp_path)
    into_files(counts(env), tmp_path)
    client = env.execute_async("asked")
    taken = command("savepoint", tmp_path / "checkpoints", tmp_path / "taken")
    assert (taken.stdout, taken.returncode) == (f"savepoint {tmp_path / 'taken'}\n", 0)
    cancelled = command("cancel", tmp_path / "checkpoints")
    assert (cancelled.stdout, cancelled.returncode) == ("cancelled\n", 0)
    assert isinstance(client.get_job_execution_result().exception(), CancelledError)
    assert client.get_job_status().result() is JobStatus.CANCELED
    found = written(tmp_path)
    require_exact(found)
    env = environment(tmp_path)
    reached = Reached(env, 20)
    into_files(counts(env), tmp_path)
    client = env.execute_async("asked")
    reached.wait()
    stop(client, tmp_path)
    assert len(written(tmp_path)) > len(found)
    require_exact(written(tmp_path))


def test_draining_a_job_fires_its_windows(tmp_path: Path) -> None:
    env = environment(tmp_path, {"execution.checkpointing.interval": "1 h"})
    reached = Reached(env, 0)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=1000)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ValueAsTime())
    stream = env.from_source(numbers, strategy, "numbers")
    windows = stream.key_by(lambda n: 0).window(TumblingEventTimeWindows.of(Time.days(1)))
    into_files(windows.reduce(max).map(lambda n: (n,)), tmp_path)
    client = env.execute_async("drained")
    reached.wait()
    assert written(tmp_path) == []
    stop(client, tmp_path, drain=True)  # long before the interval ends
    assert len(written(tmp_path)) == 1
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.last_progress.watermark == "end"


class EverySecond(KeyedProcessFunction[int, int, tuple[int]]):
    """Sets a processing-time timer every second, and counts its firings."""

    def open(self, runtime_context: Any) -> None:
        self.fired = runtime_context.get_state(ValueStateDescriptor("fired", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int]]:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 20)
        return iter(())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[int]]:
        self.fired.update((self.fired.value() or 0) + 1)
        ctx.timer_service().register_processing_time_timer(timestamp + 20)
        yield (self.fired.value(),)


def test_processing_time_timers_start_epochs_without_input(tmp_path: Path) -> None:
    env = environment(tmp_path)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=20)
    stream = env.from_source(numbers, NONE, "numbers").filter(lambda n: n == 0)
    with stream.key_by(lambda n: 0).process(EverySecond()).execute_and_collect("timers") as records:
        found = [next(records) for _ in range(10)]
    assert found == [(number,) for number in range(1, 11)]


def read_available(folder: Path, job_name: str = "files") -> None:
    """Counts the numbers in the files of the folder `in`."""
    env = environment(folder, {"opchain.streaming.trigger": "available-now"})
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder / "in")
    watched = lines.monitor_continuously(Duration.of_seconds(1)).build()
    numbers = env.from_source(watched, NONE, "files").uid("watched").map(int)
    into_files(numbers.key_by(lambda n: n % KEYS).process(Count()).uid("counts"), folder)
    env.execute(job_name)


def write_numbers(folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    lines = "".join(f"{value}\n" for value in range(20 * number, 20 * number + 20))
    (folder / "in" / str(number)).write_text(lines, "utf-8")


def test_available_files_are_read_once_in_several_runs(tmp_path: Path) -> None:
    for number in range(3):
        write_numbers(tmp_path, number)
        read_available(tmp_path)
        found = written(tmp_path)
        assert len(found) == 20 * (number + 1)
        require_exact(found)


def test_a_job_that_continues_from_checkpoints_of_another_job_logs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_numbers(tmp_path, 0)
    read_available(tmp_path)
    assert "continues from checkpoint" not in caplog.text
    read_available(tmp_path, "others")
    assert "job 'others' continues from checkpoint 1 of job 'files'" in caplog.text
    assert "give it its own execution.checkpointing.dir" in caplog.text


@pytest.mark.parametrize(
    ("content", "has_checksums"),
    [(b"", True), (b"", False), (b"v1", False), (b"\x80", False), ("[1]", True), ("[3]", True)],
)
def test_a_damaged_offset_log_is_an_error(
    tmp_path: Path, content: bytes | str, *, has_checksums: bool
) -> None:
    for number in range(2):
        write_numbers(tmp_path, number)
        read_available(tmp_path)
    log = tmp_path / "checkpoints" / "spark" / "offsets"
    whole = (log / "1").read_bytes()
    if isinstance(content, str):
        assert whole.count(b"[2]") == 1
        content = whole.replace(b"[2]", content.encode())
    (log / "1").write_bytes(content)
    if not has_checksums:
        (log / ".1.crc").unlink()
    write_numbers(tmp_path, 2)
    with pytest.raises(CorruptCheckpointError, match=r"offsets/1 .*how far the sources were read"):
        read_available(tmp_path)
    assert len(written(tmp_path)) == 40
    (log / "1").write_bytes(whole)
    read_available(tmp_path)
    require_exact(written(tmp_path))


def test_the_offset_in_the_checkpoint_takes_precedence_over_the_log(tmp_path: Path) -> None:
    """A replaced driver may plan the first micro-batch again when it wakes."""
    write_numbers(tmp_path, 0)
    read_available(tmp_path)
    log = str(tmp_path / "checkpoints" / "spark")
    offset = required_offset(log, 0, POSITIONS)
    assert offset is not None
    log_offset(log, 0, offset | {POSITIONS: [0]}, 0)
    write_numbers(tmp_path, 1)
    read_available(tmp_path)
    require_exact(written(tmp_path))
    assert required_offset(log, 0, POSITIONS) == offset


def test_a_cancelled_epoch_leaves_no_output_and_runs_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entered, released = threading.Event(), threading.Event()
    hooks[str(tmp_path)] = (entered, released)

    def draw(env: Any) -> None:
        env.set_max_parallelism(16)
        into_files(counts(env, Blocks(str(tmp_path))), tmp_path)

    settings = StreamingSettings(checkpoint_dir=str(tmp_path / "checkpoints"))
    unbounded = LocalEpochJob(job_of(draw), settings)
    run = UnboundedRun(unbounded).start()
    assert entered.wait(LONGEST_S)
    before = written(tmp_path)
    unbounded.cancel(0.0)
    assert "the current epoch is cancelled" in caplog.text
    released.set()
    with pytest.raises(TaskFailedError, match="cancelled within an epoch"):
        run.get_job_execution_result().result(LONGEST_S)
    assert written(tmp_path) == before
    env = environment(tmp_path)
    reached = Reached(env, 50)
    into_files(counts(env), tmp_path)
    client = env.execute_async("blocks")
    reached.wait()
    stop(client, tmp_path)
    require_exact(written(tmp_path))


hooks: dict[str, tuple[threading.Event, threading.Event]] = {}


class Blocks:
    """Does not return from the first record after the tenth until the test releases it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: int) -> None:
        entered, released = hooks[self.name]
        if value >= 10:
            entered.set()
            assert released.wait(LONGEST_S)


class GivenTimer:
    """Replaces threading.Timer; the test says when the time is over."""

    last: GivenTimer

    def __init__(self, after_s: float, function: Callable[[], None]) -> None:
        self.after_s = after_s
        self.function = function
        self.daemon = False

    def start(self) -> None:
        GivenTimer.last = self

    def cancel(self) -> None:
        """No thread is running."""


class ExpiresOnce:
    """Ends the timeout of the checkpoint once, at the first record after the tenth."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __call__(self, value: int) -> None:
        if value > 10 and not self.marker.exists():
            self.marker.touch()
            GivenTimer.last.function()


def test_a_checkpoint_that_times_out_fails_and_its_epoch_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opchain.runtime.job.epochs.Timer", GivenTimer)
    settings = {
        "execution.checkpointing.timeout": "7 s",
        "execution.checkpointing.tolerable-failed-checkpoints": "1",
    }
    env = environment(tmp_path, settings, parallelism=2)
    reached = Reached(env, 100)
    into_files(counts(env, ExpiresOnce(tmp_path / "marker")), tmp_path)
    client = env.execute_async("expires")
    reached.wait(client)
    stop(client, tmp_path)
    require_exact(written(tmp_path))
    assert GivenTimer.last.after_s == 7
    declined = [reason for epoch in reached.epochs for reason in epoch.declined]
    assert declined == ["CHECKPOINT_EXPIRED"]


class Lines(SinkWriter[Any]):
    """Collects lines; those of an epoch are one committable."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        self.lines.append(" ".join(map(str, value)))

    def prepare_commit_of(self, checkpoint_id: int | None) -> Any:
        lines, self.lines = self.lines, []
        return [(checkpoint_id, lines)]


AT_FAILURE: list[Callable[[], object]] = []
"""Called when a commit fails."""


class FailsOnce(Committer):
    """Writes a file per epoch; the commit of the second epoch fails once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def commit(self, committables: Any) -> None:
        (self.folder / "out").mkdir(exist_ok=True)
        for checkpoint_id, lines in committables:
            if checkpoint_id == 2 and not (self.folder / "failed").exists():
                (self.folder / "failed").touch()
                for call in AT_FAILURE:
                    call()
                raise OSError("the disk is full")
            text = "".join(f"{line}\n" for line in lines)
            (self.folder / "out" / str(checkpoint_id)).write_text(text, "utf-8")


class FailingSink(Sink[Any]):
    has_committer = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create_writer(self, context: Any) -> Lines:
        return Lines()

    def create_committer(self) -> FailsOnce:
        return FailsOnce(self.folder)


def test_a_failed_commit_is_repeated_without_running_its_epoch_again(tmp_path: Path) -> None:
    env = environment(tmp_path, RESTARTS)
    reached = Reached(env, 100)
    counts(env).sink_to(FailingSink(tmp_path))
    client = env.execute_async("commits")
    reached.wait()
    stop(client, tmp_path)
    assert (tmp_path / "failed").exists()
    found = written(tmp_path)
    require_exact(found)
    epochs = [epoch.epoch for epoch in reached.epochs]
    assert epochs == list(range(1, len(epochs) + 1))
    assert sum(epoch.records_in for epoch in reached.epochs) == len(found)
    second = (tmp_path / "out" / "2").read_text("utf-8").splitlines()
    assert {line.split()[-1] for line in second} == {"0"}  # the epoch was not run a second time


def test_records_of_an_epoch_with_a_failed_commit_are_collected(tmp_path: Path) -> None:
    stream = counts(environment(tmp_path, RESTARTS))
    stream.sink_to(FailingSink(tmp_path))
    with stream.execute_and_collect("commits") as records:
        require_exact(list(islice(records, 100)))
    assert (tmp_path / "failed").exists()


class AlwaysFails(Committer):
    def commit(self, committables: Any) -> None:
        raise OSError("the disk is full")


class AlwaysFailingSink(FailingSink):
    def create_committer(self) -> Any:
        return AlwaysFails()


def test_a_commit_that_fails_after_each_restart_says_that_its_checkpoint_is_complete(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = environment(tmp_path, RESTARTS)
    counts(env).sink_to(AlwaysFailingSink(tmp_path))
    with pytest.raises(OSError, match="the disk is full") as raised:
        env.execute("commits")
    where = f"in epoch 1; if it is started again, the job commits this epoch, whose checkpoint is complete: {tmp_path}/checkpoints/chk-1"
    assert where in raised.value.__notes__
    assert caplog.text.count(where) == 3  # in the warning of each restart


class ThreeTens(UnboundedSource[int]):
    """The numbers from 0 to 29, ten in each epoch; then the source ends."""

    follows_positions = True

    def initial_position(self, now_ms: int) -> int:
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        return min(start + 10, 30)

    def splits_between(self, start: int, end: int, parallelism: int) -> list[list[range]]:
        return [[range(start, end)], *([] for _ in range(1, parallelism))]

    def splits(self, parallelism: int) -> list[list[range]]:
        raise AssertionError(parallelism)

    def read(self, split: range, batch_size: int) -> Iterator[list[int]]:
        yield list(split)

    def is_at_end(self, position: int) -> bool:
        return position >= 30


def test_a_clock_that_is_set_back_does_not_hold_up_the_next_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_back_s: list[int] = []
    now_s = time.time
    monkeypatch.setattr(epoch_run, "wall_clock_ms", lambda: int(1000 * (now_s() - sum(set_back_s))))
    env = environment(tmp_path, {"execution.checkpointing.interval": "50 ms"})
    env.add_epoch_listener(lambda _: set_back_s.append(3600))
    into_files(env.from_source(ThreeTens(), NONE, "tens").map(lambda n: (n,)), tmp_path)
    client = env.execute_async("set back")
    try:
        client.get_job_execution_result().result(20)
    finally:
        client.cancel()
    assert len(written(tmp_path)) == 30


class IsAwayOnce(OutboxSink[int]):
    """Writes its records to a file; fails once, at the record `last`."""

    def __init__(self, folder: Path, last: int) -> None:
        self.folder = folder
        self.last = last

    def send(self, key: str, records: Sequence[int]) -> None:
        if self.last in records and not (self.folder / "failed").exists():
            (self.folder / "failed").touch()
            raise OSError("the service is away")
        with (self.folder / "sent").open("a") as sent:
            sent.writelines(f"{record}\n" for record in records)

    def sent(self) -> list[int]:
        return list(map(int, (self.folder / "sent").read_text("utf-8").split()))


def test_a_job_restarts_if_a_sink_is_away_when_it_resumes(tmp_path: Path) -> None:
    sink = IsAwayOnce(tmp_path, 15)

    def run(settings: dict[str, Any]) -> Any:
        env = environment(tmp_path, settings)
        env.from_source(ThreeTens(), NONE, "tens").sink_to(sink)
        return env.execute_async("away").get_job_execution_result().result(LONGEST_S)

    with pytest.raises(OSError, match="the service is away"):
        run({})
    (tmp_path / "failed").unlink()  # so it fails again in the first commit of the next run
    run(RESTARTS)
    assert (tmp_path / "failed").exists()
    assert sink.sent() == list(range(30))


@pytest.mark.parametrize("last", [15, 25])
def test_an_epoch_with_a_failed_commit_loses_no_output_even_if_it_is_the_last(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], last: int
) -> None:
    env = environment(tmp_path, RESTARTS)
    numbers = env.from_source(ThreeTens(), NONE, "numbers")
    sink = IsAwayOnce(tmp_path, last)
    numbers.sink_to(sink)
    numbers.map(lambda n: f"printed {n}").print()
    with numbers.execute_and_collect("commits") as records:
        assert list(records) == list(range(30))
    assert (tmp_path / "failed").exists()
    assert sink.sent() == list(range(30))
    assert capfd.readouterr().out.split() == " ".join(f"printed {n}" for n in range(30)).split()


@pytest.mark.parametrize(("drain", "last"), [(False, "2"), (True, "3")])
def test_a_stop_waits_until_all_sinks_have_committed_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, *, drain: bool
) -> None:
    env = environment(tmp_path, RESTARTS | {"restart-strategy.fixed-delay.delay": "1 s"})
    stream = counts(env)
    into_files(stream, tmp_path / "first")
    stream.sink_to(FailingSink(tmp_path))
    clients: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stopped: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        stopped.put(clients.get().stop_with_savepoint(drain, str(tmp_path / "saved")))

    monkeypatch.setattr(f"{__name__}.AT_FAILURE", [ask])
    client = env.execute_async("commits")
    clients.put(client)
    savepoint = stopped.get(timeout=LONGEST_S).result(LONGEST_S)
    assert savepoint.rpartition("-")[2] == last
    client.get_job_execution_result().result(LONGEST_S)
    found = written(tmp_path)
    require_exact(found)
    assert found == written(tmp_path / "first")
    env = environment(tmp_path / "next", {"execution.state-recovery.path": savepoint})
    reached = Reached(env, 50)
    stream = counts(env)
    into_files(stream, tmp_path / "first")
    stream.sink_to(FailingSink(tmp_path))
    client = env.execute_async("goes on")
    reached.wait(client)
    stop(client, tmp_path)
    require_exact(written(tmp_path / "first"))


@pytest.mark.parametrize("folder", ["shared", "chk-3"])
def test_a_job_restarts_after_a_failed_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    write, failed = LocalStorage._written, threading.Event()

    def fails_once(storage: LocalStorage, path: Path, data: bytes) -> Path:
        if folder in path.parts and not failed.is_set():
            failed.set()
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(storage, path, data)

    monkeypatch.setattr(LocalStorage, "_written", fails_once)
    env = environment(tmp_path, RESTARTS)
    reached = Reached(env, 100)
    into_files(counts(env), tmp_path)
    client = env.execute_async("a full disk")
    reached.wait(client)
    stop(client, tmp_path)
    assert failed.is_set()
    require_exact(written(tmp_path))


def test_after_a_fallback_the_later_epochs_read_the_same_input_again(tmp_path: Path) -> None:
    def run(records: int, settings: dict[str, Any] | None = None) -> Reached:
        retained = {"execution.checkpointing.num-retained": 3}
        env = environment(tmp_path, retained | (settings or {}))
        reached = Reached(env, records)
        into_files(counts(env), tmp_path)
        client = env.execute_async("goes back")
        try:
            reached.wait(client)
            stop(client, tmp_path)
        finally:
            client.cancel().result(LONGEST_S)
        return reached

    run(100)
    before = written(tmp_path)
    storage = checkpoint_storage(str(tmp_path / "checkpoints"))
    last = latest_checkpoint(storage)
    assert last is not None
    own = [name for name in last.files if name.startswith(f"shared/{last.checkpoint_id}/")]
    assert own
    for name in own:
        storage.write(name, b"")
    with pytest.raises(
        CorruptCheckpointError, match=f"checkpoint {last.checkpoint_id - 1} is intact"
    ):
        run(1)
    earlier = f"{storage.url}/chk-{last.checkpoint_id - 1}"
    reached = run(len(before) + 100, {"execution.state-recovery.path": earlier})
    assert reached.epochs[0].epoch == last.checkpoint_id
    found = written(tmp_path)
    require_exact(found)
    assert set(before) < set(found)


def bounded_counts(
    folder: Path, values: list[int], parallelism: int, settings: dict[str, Any]
) -> list[tuple[int, ...]]:
    env = environment(folder, settings, parallelism)
    numbers = env.from_collection(values)
    counted = numbers.key_by(lambda n: n % KEYS).process(Count()).uid("counts")
    with counted.execute_and_collect("bounded") as records:
        return sorted(records)


def test_a_bounded_job_saves_its_state_for_another_job(tmp_path: Path) -> None:
    saved = str(tmp_path / "saved")
    first = bounded_counts(
        tmp_path / "first", list(range(10)), 1, {"opchain.savepoint-at-end": saved}
    )
    assert first == [(n, n // KEYS + 1, 0) for n in range(10)]
    second = bounded_counts(
        tmp_path / "second", list(range(10, 15)), 3, {"execution.state-recovery.path": saved}
    )
    assert second == [(n, 3, 0) for n in range(10, 15)]


class CountAll(MapPartitionFunction):
    def map_partition(self, values: Any) -> Iterator[int]:
        yield sum(1 for _ in values)


def test_the_output_of_a_bounded_job_is_sent_once_even_if_its_commit_fails(
    tmp_path: Path,
) -> None:
    saved = str(tmp_path / "saved")
    bounded_counts(tmp_path / "first", [0], 1, {"opchain.savepoint-at-end": saved})
    sink = IsAwayOnce(tmp_path, 10)
    for _ in range(2):
        env = environment(tmp_path, RESTARTS | {"execution.state-recovery.path": saved})
        numbers = env.from_collection(list(range(10)))
        numbers.key_by(lambda n: n % KEYS).process(Count()).uid("counts").print()
        numbers.full_window_partition().map_partition(CountAll()).sink_to(sink)
        env.execute("bounded")
    assert (tmp_path / "failed").exists()
    assert sink.sent() == [10]


def test_messages_are_copied_from_kafka_to_kafka_once_even_if_the_job_fails(
    tmp_path: Path, kafka: Kafka
) -> None:
    here, there = kafka.topic(partitions=2), kafka.topic()
    for partition in range(2):
        kafka.produce(here, list(range(partition, 150, 2)), partition=partition)
    started = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(here)
    source = (
        started.set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    schema = KafkaRecordSerializationSchema.builder().set_topic(there)
    schema.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.servers)
    sink.set_record_serializer(schema.build()).set_transactional_id_prefix("in process")
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    env = environment(tmp_path, RESTARTS, parallelism=2)
    halfway, reached = Reached(env, 150), Reached(env, 200)
    numbers = env.from_source(source, NONE, "kafka").uid("kafka").map(int)
    counted = numbers.key_by(lambda n: n % KEYS).process(Count(FailsAtMost(tmp_path, 3)))
    lines = counted.uid("counts").map(lambda found: f"{found[0]} {found[1]}", Types.STRING())
    lines.sink_to(sink.build()).uid("sink")
    client = env.execute_async("from Kafka to Kafka")
    halfway.wait(client)
    for partition in range(2):
        kafka.produce(here, list(range(150 + partition, 200, 2)), partition=partition)
    reached.wait(client)
    stop(client, tmp_path)
    assert len(list(tmp_path.glob("failure *"))) == 3
    found = sorted(tuple(map(int, message.value().split())) for message in kafka.messages(there))
    assert len(found) == 200
    require_exact(found)


class TextAsTime(TimestampAssigner):
    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        return int(value)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_kafka_partition_that_is_ahead_waits_for_the_other_partition(
    tmp_path: Path, kafka: Kafka, parallelism: int
) -> None:
    topic = kafka.topic(partitions=2)
    kafka.produce(topic, list(range(100)), partition=0)
    kafka.produce(topic, list(range(0, 1000, 10)), partition=1)
    source = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
    source.set_unbounded(KafkaOffsetsInitializer.latest()).set_max_records_per_epoch(10)
    source.set_value_only_deserializer(SimpleStringSchema())
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TextAsTime())
    aligned = times.with_watermark_alignment("group", Duration.of_millis(150))
    env = environment(tmp_path, parallelism=parallelism)
    epochs: list[EpochProgress] = []
    env.add_epoch_listener(epochs.append)
    texts = env.from_source(source.build(), aligned, "times").uid("times")
    with texts.execute_and_collect("aligned") as found:
        assert sorted(map(int, found)) == sorted([*range(100), *range(0, 1000, 10)])
    read = [
        tuple(operator.splits[f"{topic}-{number}"]["next"] for number in range(2))
        for epoch in epochs
        for vertex in epoch.vertices
        for operator in vertex.operators
        if operator.uid == "times"
    ]
    assert read[-1] == (100, 100)
    waited = 0
    for (slow, fast), (_, fast_then) in pairwise(read):
        if slow < 100 and 10 * (fast - 1) - 1 > slow - 2 + 150:
            assert fast_then == fast
            waited += 1
    assert waited > 5
