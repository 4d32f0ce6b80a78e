"""Checkpoint settings of a job on Spark: interval, minimum pause, tolerable failures."""

from __future__ import annotations

import queue
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Encoder, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.functions import MapFunction
from opchain.runtime.checkpoint.storage import LocalStorage
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import CheckpointError
from opchain.runtime.functions.state import CheckpointedFunction
from opchain.spark import SparkSource

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.spark import EpochProgress

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

LONGEST_S = 240
ATTEMPTS = 3
"""How often Spark tries a task in these tests: see MASTER."""


def environment(folder: Path, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
    for name, value in settings.items():
        key = f"execution.checkpointing.{name.replace('_', '-')}"
        configuration.set_string("opchain.streaming.trigger" if name == "trigger" else key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    return env


def test_epochs_keep_the_checkpoint_interval_and_the_minimum_pause(tmp_path: Path) -> None:
    env = environment(tmp_path, interval="2 s", min_pause="1 s")
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=1_000)
    env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers").print()
    heard: queue.Queue[EpochProgress] = queue.Queue()
    env.add_epoch_listener(heard.put)
    client = env.execute_async("numbers")
    epochs = [heard.get(timeout=LONGEST_S) for _ in range(3)]
    client.cancel().result(LONGEST_S)
    for before, epoch in pairwise(epochs):
        assert epoch.durations_ms["waiting"] >= 1_000
        assert (
            epoch.timestamp_ms - before.timestamp_ms >= 1_000
        )  # an epoch that took longer than the interval is followed at once


class FailsAtFirst(MapFunction[Any, str], CheckpointedFunction):
    """Fails a number of times when its state is written."""

    def __init__(self, folder: Path, failures: int) -> None:
        self.folder = folder
        self.failures = failures

    def map(self, value: Any) -> str:
        return str(value[0])

    def snapshot_state(self, context: Any) -> None:
        failed = len(list(self.folder.iterdir()))
        if failed < self.failures:
            (self.folder / str(failed)).touch()
            raise OSError(28, "No space left on device")

    def initialize_state(self, context: Any) -> None:
        pass


def copy_rows(folder: Path, failures: int, **settings: str) -> list[str]:
    """The output for three rows if checkpoints fail the given number of times."""
    (folder / "rows").mkdir(exist_ok=True)
    (folder / "failed").mkdir(exist_ok=True)
    (folder / "rows" / "1.csv").write_text("a\nb\nc\n")
    env = environment(folder, trigger="available-now", **settings)
    source = SparkSource("csv", schema="name string", path=str(folder / "rows"), is_streaming=True)
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    names = rows.map(FailsAtFirst(folder / "failed", failures)).uid("names")
    sink = FileSink.for_row_format(str(folder / "output"), Encoder.simple_string_encoder())
    files = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    names.sink_to(files).uid("files")
    env.execute("copy")
    written = [path for path in (folder / "output").rglob("part-*") if path.is_file()]
    return [line for path in written for line in path.read_text().splitlines()]


def test_an_epoch_with_a_failed_checkpoint_is_run_again(tmp_path: Path) -> None:
    failures = 2 * ATTEMPTS
    assert sorted(copy_rows(tmp_path, failures, tolerable_failed_checkpoints="2")) == [
        "a",
        "b",
        "c",
    ]
    assert len(list((tmp_path / "failed").iterdir())) == failures


@pytest.mark.parametrize("times", [1, 2])
def test_an_epoch_whose_metadata_cannot_be_written_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The storage of the driver fails; tasks have written their state, and sinks their files."""
    attempts: list[str] = []
    publish = LocalStorage.publish

    def refusing(storage: LocalStorage, name: str, data: bytes) -> None:
        if name.endswith("_metadata"):
            attempts.append(name)
            if len(attempts) <= times:
                raise OSError(28, "No space left on device")
        publish(storage, name, data)

    monkeypatch.setattr(LocalStorage, "publish", refusing)
    if times == 1:
        assert sorted(copy_rows(tmp_path, 0, tolerable_failed_checkpoints="1")) == ["a", "b", "c"]
        assert attempts == ["chk-1/_metadata"] * 2
    else:
        with pytest.raises(CheckpointError, match="2 in a row, tolerable: 1"):
            copy_rows(tmp_path, 0, tolerable_failed_checkpoints="1")
        assert [path for path in (tmp_path / "output").rglob("part-*") if path.is_file()] == []
        assert sorted(copy_rows(tmp_path, 0)) == ["a", "b", "c"]  # the next run continues


def test_more_failures_than_tolerable_fail_the_job(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError,
        match=r"can't write its state.*No space left.*2 in a row, tolerable: 1",
    ):
        copy_rows(tmp_path, 10 * ATTEMPTS, tolerable_failed_checkpoints="1")
    assert len(list((tmp_path / "failed").iterdir())) == 2 * ATTEMPTS
