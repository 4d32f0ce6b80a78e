"""Listeners for epochs on Spark: epoch listeners, the job client, the log, and Spark's own listeners."""

from __future__ import annotations

import json
import queue
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.spark import EpochProgress, read_progress_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

LONGEST_S = 240


@pytest.fixture
def sparks_progress(session: SparkSession) -> Iterator[queue.SimpleQueue[Any]]:
    """The events of a Spark listener."""
    from pyspark.sql.streaming.listener import StreamingQueryListener  # noqa: PLC0415

    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            heard.put(event.progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            pass

    listener = Listener()
    session.streams.addListener(listener)
    yield heard
    session.streams.removeListener(listener)


def test_all_listeners_get_the_same_numbers_of_an_epoch(
    tmp_path: Path, sparks_progress: queue.SimpleQueue[Any]
) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    configuration.set_string("opchain.streaming.progress-log", str(tmp_path / "epochs.jsonl"))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=100)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    stream.key_by(lambda n: n % 5).reduce(lambda a, b: a + b).uid("sums").print()
    heard: queue.Queue[EpochProgress] = queue.Queue()
    env.add_epoch_listener(heard.put)
    client = env.execute_async("watched")
    epochs = [heard.get(timeout=LONGEST_S)]
    while not epochs[-1].records_in:  # Spark runs a first micro-batch even if nothing is due yet
        epochs.append(heard.get(timeout=LONGEST_S))
    epoch = epochs[-1]
    # Spark reports a micro-batch when it is over, and not if it was stopped before.
    spark = [sparks_progress.get(timeout=LONGEST_S) for _ in range(epoch.epoch)][-1]
    client.cancel().result(LONGEST_S)
    while not heard.empty():
        epochs.append(heard.get())

    assert [epoch.epoch for epoch in epochs] == list(range(1, len(epochs) + 1))
    assert client.recent_progress == epochs
    assert client.last_progress == epochs[-1]
    assert list(read_progress_log(tmp_path / "epochs.jsonl")) == epochs
    times = [epoch.timestamp_ms for epoch in epochs]
    assert times == sorted(times)
    assert epoch.records_out == epoch.records_in
    assert 0 < epoch.state_entries <= 5
    assert 0 < epoch.written_bytes < epoch.state_bytes
    assert epoch.checkpoint == str(tmp_path / "checkpoints" / f"chk-{epoch.epoch}")
    assert list(epoch.durations_ms) == ["waiting", "tasks", "checkpoint", "commit"]

    assert spark.batchId == epoch.batch == epoch.epoch - 1
    assert spark.name == f"watched {epoch.run_id[:8]}"
    assert spark.durationMs["addBatch"] >= int(epoch.duration_ms)
    read = json.loads(spark.sources[0].endOffset)["positions"][0][0]
    assert read == sum(other.records_in for other in epochs[: epoch.epoch])
