from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import traceback
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from crash_runs import CrashRun, in_process_epochs

from opchain.common import Configuration, Duration, Encoder, Time, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    StreamFormat,
)
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingProcessingTimeWindows
from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
from opchain.runtime.checkpoint.savepoint import find_checkpoint, write_savepoint
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import (
    CheckpointError,
    CheckpointInUseError,
    CorruptCheckpointError,
    StreamError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from opchain.datastream import DataStream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

SCHEMA = "word string"


def environment(folder: Path, parallelism: int = 2, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
    configuration.set_string("opchain.streaming.trigger", "available-now")
    for key, value in settings.items():
        configuration.set_string(KEYS[key], value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.set_max_parallelism(16)
    return env


KEYS = {
    "trigger": "opchain.streaming.trigger",
    "restore_from": "execution.state-recovery.path",
    "key_file": "execution.checkpointing.key-file",
    "checkpoints": "execution.checkpointing.dir",
    "retained": "execution.checkpointing.num-retained",
    "backend": "state.backend.type",
    "allowed": "execution.state-recovery.ignore-unclaimed-state",
}


def write(folder: Path, name: str, words: list[str]) -> None:
    (folder / "input").mkdir(exist_ok=True)
    hidden = folder / "input" / f".{name}"
    hidden.write_text("".join(json.dumps({"word": word}) + "\n" for word in words))
    hidden.rename(folder / "input" / name)


def words_of(env: StreamExecutionEnvironment, folder: Path) -> DataStream[str]:
    from opchain.runtime.spark.formats import SparkSource  # noqa: PLC0415

    source = SparkSource(
        "json",
        {"maxFilesPerTrigger": "1"},
        schema=SCHEMA,
        path=str(folder / "input"),
        is_streaming=True,
    )
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    return rows.map(lambda row: row[0])


class Count(KeyedProcessFunction[str, str, str]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: Any) -> Iterator[str]:
        if value == "poison":
            raise ValueError("no poison here")
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value} {self.count.value()}"


def count_words(env: StreamExecutionEnvironment, folder: Path) -> None:
    counts = words_of(env, folder).key_by(lambda word: word).process(Count()).uid("count")
    sink = FileSink.for_row_format(str(folder / "output"), Encoder.simple_string_encoder())
    files = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    counts.sink_to(files).uid("files")
    env.execute("count words")


def written(folder: Path) -> Counter[str]:
    files = [path for path in (folder / "output").rglob("*") if path.is_file()]
    assert not [path for path in files if path.name.startswith(".")]
    return Counter(line for path in files for line in path.read_text().splitlines())


def counted(*words: str) -> Counter[str]:
    seen: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for word in words:
        seen[word] += 1
        lines[f"{word} {seen[word]}"] += 1
    return lines


def test_state_and_output_continue_over_epochs_restarts_and_parallelisms(tmp_path: Path) -> None:
    write(tmp_path, "1", ["a", "b", "a"])
    write(tmp_path, "2", ["b", "c"])
    count_words(environment(tmp_path), tmp_path)
    assert written(tmp_path) == counted("a", "b", "a", "b", "c")
    # No new input: no new output.
    count_words(environment(tmp_path), tmp_path)
    assert written(tmp_path) == counted("a", "b", "a", "b", "c")
    write(tmp_path, "3", ["c", "a"])
    count_words(environment(tmp_path, parallelism=3), tmp_path)
    write(tmp_path, "4", ["a"])
    count_words(environment(tmp_path, parallelism=1), tmp_path)
    assert written(tmp_path) == counted("a", "b", "a", "b", "c", "c", "a", "a")


def test_an_error_of_a_function_ends_the_job_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, "1", ["a", "b"])
    count_words(environment(tmp_path), tmp_path)
    write(tmp_path, "2", ["a", "poison"])
    with pytest.raises(ValueError, match="no poison here") as caught:
        count_words(environment(tmp_path), tmp_path)
    assert any("at record 'poison'" in note for note in caught.value.__notes__)
    assert caught.value.__notes__[-1] == (
        f"in epoch 2; if it is started again, the job resumes from {tmp_path}/checkpoints/chk-1; this epoch has committed "
        "no output"
    )
    # The error omits Spark's own message, which has its plan and the traceback twice more.
    text = "".join(traceback.format_exception(caught.value))
    assert "StreamingQueryException" not in text
    assert len(text.splitlines()) < 30
    assert written(tmp_path) == counted("a", "b")
    # The same rows are read again: without the failing row the epoch succeeds.
    write(tmp_path, "2", ["a", "b"])
    count_words(environment(tmp_path), tmp_path)
    assert written(tmp_path) == counted("a", "b", "a", "b")


def test_a_savepoint_starts_a_job_with_another_checkpoint_directory(tmp_path: Path) -> None:
    write(tmp_path, "1", ["a", "b"])
    count_words(environment(tmp_path), tmp_path)
    write_savepoint(find_checkpoint(str(tmp_path / "checkpoints")), str(tmp_path / "savepoint"))
    shutil.rmtree(tmp_path / "checkpoints")
    write(tmp_path, "2", ["b", "b"])
    settings = {"restore_from": str(tmp_path / "savepoint"), "checkpoints": str(tmp_path / "new")}
    count_words(environment(tmp_path, **settings), tmp_path)
    assert written(tmp_path) == counted("a", "b", "b", "b")


def test_a_job_resumes_from_the_checkpoint_before_a_damaged_one(tmp_path: Path) -> None:
    write(tmp_path, "1", ["a", "b"])
    count_words(environment(tmp_path, retained="2"), tmp_path)
    write(tmp_path, "2", ["b", "a"])
    count_words(environment(tmp_path, retained="2"), tmp_path)
    checkpoints = tmp_path / "checkpoints"
    damaged = next(iter((checkpoints / "shared" / "2").glob("*.state")))
    data = damaged.read_bytes()
    write(tmp_path, "3", ["b", "c"])
    setting = f"execution.state-recovery.path={checkpoints}/chk-1"
    for left in (data[:-1], None, data[:-9] + b"?" + data[-8:]):
        if left is None:
            damaged.unlink()
        else:
            damaged.write_bytes(left)
        with pytest.raises(CorruptCheckpointError) as caught:
            count_words(environment(tmp_path, retained="2"), tmp_path)
        assert str(damaged) in str(caught.value)
        assert f"checkpoint 1 is intact: to resume from it, set {setting} and" in str(caught.value)
    settings = {"retained": "2", "restore_from": str(checkpoints / "chk-1")}
    count_words(environment(tmp_path, **settings), tmp_path)
    assert written(tmp_path) == counted("a", "b", "b", "a", "b", "c")
    # If the setting stays, the job does not go back any further.
    write(tmp_path, "4", ["c"])
    count_words(environment(tmp_path, **settings), tmp_path)
    assert written(tmp_path) == counted("a", "b", "b", "a", "b", "c", "c")


def test_after_a_fallback_each_epoch_reads_its_input_again(
    tmp_path: Path,
) -> None:
    words: list[str] = []
    for number in range(1, 4):
        write(tmp_path, str(number), ["a", str(number)])
        words += ["a", str(number)]
        watch_words(environment(tmp_path, retained="3"), tmp_path)
    for epoch in ("2", "3"):
        for file in (tmp_path / "checkpoints" / "shared" / epoch).glob("*.state"):
            file.write_bytes(file.read_bytes()[:-1])
    # Input that arrived later is not in an epoch that is run again.
    write(tmp_path, "4", ["a", "4"])
    back = str(tmp_path / "checkpoints" / "chk-1")
    watch_words(environment(tmp_path, retained="3", restore_from=back), tmp_path)
    assert written(tmp_path) == counted(*words, "a", "4")
    assert not (tmp_path / "checkpoints" / "replaced-offsets").exists()
    assert max(int(path.name[4:]) for path in (tmp_path / "checkpoints").glob("chk-*")) == 4


def watch_words(env: StreamExecutionEnvironment, folder: Path) -> None:
    """An epoch reads all new files."""
    text = StreamFormat.text_line_format()
    files = FileSource.for_record_stream_format(text, str(folder / "input"))
    source = files.monitor_continuously(Duration.of_seconds(1)).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
    words = lines.map(lambda line: json.loads(line)["word"])
    counts = words.key_by(lambda word: word).process(Count()).uid("count")
    sink = FileSink.for_row_format(str(folder / "output"), Encoder.simple_string_encoder())
    output = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    counts.sink_to(output).uid("files")
    env.execute("watch words")


def test_state_can_move_between_the_disk_and_the_memory_backend(tmp_path: Path) -> None:
    backends = ["rocksdb", "hashmap", "rocksdb", "rocksdb"]
    words: list[str] = []
    for number, backend in enumerate(backends):
        write(tmp_path, str(number), ["a", "b", "a", str(number)])
        words += ["a", "b", "a", str(number)]
        count_words(environment(tmp_path, backend=backend, parallelism=1 + number % 2), tmp_path)
        assert written(tmp_path) == counted(*words)


def test_checkpoints_that_do_not_match_sparks_log_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "1", ["a"])
    count_words(environment(tmp_path), tmp_path)
    for folder in (tmp_path / "checkpoints").glob("chk-*"):
        shutil.rmtree(folder)
    write(tmp_path, "2", ["b"])
    with pytest.raises(
        CheckpointError, match=r"has committed checkpoint 1, and the last .* is 0: "
    ):
        count_words(environment(tmp_path), tmp_path)


def test_without_sparks_log_sources_are_read_again_only_if_that_is_allowed(
    tmp_path: Path,
) -> None:
    write(tmp_path, "1", ["a", "b"])
    count_words(environment(tmp_path), tmp_path)
    shutil.rmtree(tmp_path / "checkpoints" / "spark")
    write(tmp_path, "2", ["b"])
    with pytest.raises(CheckpointError, match=r"micro-batch 0, .*restore both from one backup"):
        count_words(environment(tmp_path), tmp_path)
    settings = {"restore_from": str(tmp_path / "checkpoints"), "checkpoints": str(tmp_path / "new")}
    with pytest.raises(
        CheckpointError, match=r"'spark'\) is missing from the checkpoint: 'Source: rows' .* twice"
    ):
        count_words(environment(tmp_path, **settings), tmp_path)
    assert written(tmp_path) == counted("a", "b")
    count_words(environment(tmp_path, **settings, allowed="true"), tmp_path)
    assert written(tmp_path) == counted("a", "b", "a", "b", "b")


def test_new_files_of_a_folder_are_read(tmp_path: Path) -> None:
    def count_lines() -> None:
        env = environment(tmp_path)
        text = FileSource.for_record_stream_format(
            StreamFormat.text_line_format(), str(tmp_path / "input")
        )
        source = text.monitor_continuously(Duration.of_seconds(1)).build()
        lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
        counts = lines.key_by(lambda line: line).process(Count()).uid("count")
        sink = FileSink.for_row_format(str(tmp_path / "output"), Encoder.simple_string_encoder())
        files = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
        counts.sink_to(files).uid("files")
        env.execute("count lines")

    (tmp_path / "input" / "deep").mkdir(parents=True)
    (tmp_path / "input" / "one file").write_text("a\nb\na\n")
    (tmp_path / "input" / ".hidden").write_text("c\n")
    count_lines()
    assert written(tmp_path) == counted("a", "b", "a")
    (tmp_path / "input" / "deep" / "two").write_text("b\n")
    a_month_ago = (tmp_path / "input" / "one file").stat().st_mtime - 30 * 86_400
    os.utime(tmp_path / "input" / "deep" / "two", (a_month_ago, a_month_ago))
    count_lines()
    assert written(tmp_path) == counted("a", "b", "a", "b")


def test_output_of_a_removed_sink_is_skipped_if_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = CrashRun(tmp_path)
    run.run(until=1)
    coordinator = CheckpointCoordinator.open(run.storage, "job", "run", keeps_alive=False)
    latest = coordinator.latest()
    assert latest is not None
    gone = "0" * 32
    of_gone = tuple(replace(item, operator_id=gone) for item in latest.committables)
    assert of_gone
    monkeypatch.setattr(coordinator, "latest", lambda: replace(latest, committables=of_gone))
    with pytest.raises(
        CheckpointError,
        match=f"sink {gone} .* or set execution.state-recovery.ignore-unclaimed-state",
    ):
        in_process_epochs(run.job(), coordinator, run.storage)
    in_process_epochs(run.job(), coordinator, run.storage, allow_non_restored_state=True)
    assert f"output of the sink {gone} that may not be committed" in caplog.text
    coordinator.close()


@contextmanager
def running(env: StreamExecutionEnvironment) -> Iterator[Any]:
    client = env.execute_async("running")
    try:
        yield client
    finally:
        client.cancel().result(240)
    assert client.get_job_status().result().name == "CANCELED"


def endless(env: StreamExecutionEnvironment, per_second: float) -> DataStream[int]:
    source = DataGeneratorSource(lambda index: index, records_per_second=per_second)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def test_collected_records_can_be_read_while_the_job_runs(tmp_path: Path) -> None:
    env = environment(tmp_path, trigger="processing-time")
    sums = endless(env, 1_000).key_by(lambda number: number % 2).reduce(lambda a, b: a + b)
    assert sums.execute_and_collect(limit=4)[0] in (0, 1)


@pytest.mark.parametrize("broken", ["a file", "another key", "a damaged run", "nowhere to go on"])
def test_a_refused_start_ends_its_readers_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    checkpoints, temporary = tmp_path / "checkpoints", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    env = environment(tmp_path, trigger="processing-time")
    if broken == "a file":
        checkpoints.write_text("")
    elif broken == "another key":
        env = environment(tmp_path, key_file=str(tmp_path / "none"))
    elif broken == "a damaged run":
        (checkpoints / "runs").mkdir(parents=True)
        (checkpoints / "runs" / "1.run").write_text("{")
    else:
        env = environment(tmp_path, restore_from=str(tmp_path / "none"))
    before = sorted(temporary.iterdir())
    collected = endless(env, 100).execute_and_collect()
    failed: list[BaseException] = []

    def read() -> None:
        try:
            next(collected)
        except (StreamError, OSError) as error:
            failed.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(60)
    assert not reader.is_alive(), "the reader waits forever"
    assert len(failed) == 1
    assert sorted(temporary.iterdir()) == before


def test_a_second_run_with_the_same_checkpoints_is_refused(tmp_path: Path) -> None:
    first = environment(tmp_path, trigger="processing-time")
    collected = endless(first, 100).collect_async()
    with running(first):
        assert next(collected) == 0
        second = environment(tmp_path, trigger="processing-time")
        endless(second, 100).print()
        with pytest.raises(CheckpointInUseError, match="running"):
            second.execute("second")


def test_a_timer_fires_without_input(tmp_path: Path) -> None:
    env = environment(tmp_path, trigger="processing-time")
    # One number a minute: no other event can start the epoch in which the window ends.
    one = (
        endless(env, 1 / 60).map(lambda number: (0, number)).union(env.from_collection([(0, 100)]))
    )
    windows = one.key_by(lambda pair: pair[0]).window(
        TumblingProcessingTimeWindows.of(Time.milliseconds(500))
    )
    collected = windows.reduce(lambda a, b: (a[0], a[1] + b[1])).collect_async()
    write(tmp_path, "1", [])
    with running(env):
        assert list(islice(collected, 1)) == [(0, 100)]


def refused(draw: Callable[[StreamExecutionEnvironment], Any], tmp_path: Path) -> str:
    env = environment(tmp_path)
    draw(env)
    with pytest.raises(UnsupportedFeatureError) as caught:
        env.execute("refused")
    return str(caught.value)


def test_a_source_that_cannot_be_rewound_is_refused(tmp_path: Path) -> None:
    from opchain.runtime.functions.source_sink_functions import SourceFunction  # noqa: PLC0415

    class Forever(SourceFunction[int]):
        def run(self, ctx: Any) -> None:
            threading.Event().wait()

        def cancel(self) -> None:
            pass

    told = refused(
        lambda env: endless(env, 1).union(env.add_source(Forever(), "forever")).print(), tmp_path
    )
    assert "'Source: forever'" in told
    assert "no positions to resume from" in told
