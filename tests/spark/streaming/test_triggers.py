"""Every trigger with several unbounded sources, and with bounded ones besides."""

from __future__ import annotations

import json
import os
import queue
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Duration, Encoder, Time, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    StreamFormat,
)
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.spark import SparkSource

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.spark import EpochProgress

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

LONGEST_S = 240
BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda event, _: event[1]
)


def environment(folder: Path, trigger: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
    configuration.set_string("opchain.streaming.trigger", trigger)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    return env


def count_events(env: StreamExecutionEnvironment, folder: Path) -> None:
    """The number of events of each name in each tenth of a second, from three kinds of sources."""
    bounded = env.from_collection([("bounded", 10), ("bounded", 20), ("bounded", 990)])
    bounded = bounded.assign_timestamps_and_watermarks(BY_TIME)
    rows = SparkSource(
        "json",
        {"maxFilesPerTrigger": "1"},
        schema="name string, time bigint",
        path=str(folder / "rows"),
        is_streaming=True,
    )
    of_spark = env.from_source(rows, WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    of_spark = of_spark.map(lambda row: (row[0], row[1])).assign_timestamps_and_watermarks(BY_TIME)
    lines = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(folder / "lines")
    )
    source = lines.monitor_continuously(Duration.of_seconds(1)).build()
    texts = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
    of_files = texts.map(lambda line: ("line", int(line))).assign_timestamps_and_watermarks(BY_TIME)
    windows = (
        bounded.union(of_spark, of_files)
        .map(lambda event: (event[0], event[1], 1))
        .key_by(lambda event: event[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
    )
    counts = windows.reduce(lambda a, b: (a[0], min(a[1], b[1]), a[2] + b[2])).uid("windows")
    sink = FileSink.for_row_format(str(folder / "output"), Encoder.simple_string_encoder())
    files = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    counts.map(lambda count: f"{count[0]} {count[1] // 100} {count[2]}").sink_to(files).uid("files")


def add_rows(folder: Path, name: str, *times: int) -> None:
    _appear(
        folder / "rows" / name,
        "".join(json.dumps({"name": "row", "time": time}) + "\n" for time in times),
    )


def add_lines(folder: Path, name: str, *times: int) -> None:
    _appear(folder / "lines" / name, "".join(f"{time}\n" for time in times))


def _appear(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    seconds = 1_700_000_000 + int(
        path.name
    )  # Spark reads files by age, and these would be equally old otherwise
    os.utime(hidden, (seconds, seconds))
    hidden.rename(path)


def written(folder: Path) -> Counter[str]:
    files = [path for path in (folder / "output").rglob("part-*") if path.is_file()]
    return Counter(line for path in files for line in path.read_text().splitlines())


FIRST = Counter({"bounded 0 2": 1, "row 0 2": 1, "line 0 1": 1})
"""Windows that end before 250, which is where the lines are; the bounded source is at its end."""


@pytest.mark.parametrize("trigger", ["available-now", "once"])
def test_available_input_is_read_and_the_job_ends(tmp_path: Path, trigger: str) -> None:
    add_rows(tmp_path, "1", 30, 40)
    add_rows(tmp_path, "2", 390)
    add_lines(tmp_path, "1", 50, 250)
    env = environment(tmp_path, trigger)
    epochs: list[EpochProgress] = []
    env.add_epoch_listener(epochs.append)
    count_events(env, tmp_path)
    env.execute("first")
    assert written(tmp_path) == FIRST
    assert sum(epoch.records_in for epoch in epochs) == 3 + 3 + 2
    # `once` reads everything in one micro-batch, whatever size limits a source has.
    assert (len(epochs) == 1) is (trigger == "once")
    # A later run resumes, and does not read the bounded source again.
    add_lines(tmp_path, "2", 260, 500)
    add_rows(tmp_path, "3", 600, 601)
    env = environment(tmp_path, trigger)
    count_events(env, tmp_path)
    env.execute("second")
    assert written(tmp_path) == FIRST + Counter({"line 2 2": 1, "row 3 1": 1})


def test_epochs_continue_while_there_is_input(tmp_path: Path) -> None:
    add_rows(tmp_path, "1", 30, 40)
    add_lines(tmp_path, "1", 50)
    env = environment(tmp_path, "processing-time")
    heard: queue.Queue[EpochProgress] = queue.Queue()
    env.add_epoch_listener(heard.put)
    count_events(env, tmp_path)
    client = env.execute_async("running")
    read = 0
    while read < 3 + 2 + 1:
        read += heard.get(timeout=LONGEST_S).records_in
    assert written(tmp_path) == Counter()  # only the bounded source is past a window
    add_rows(tmp_path, "2", 390)
    add_lines(tmp_path, "2", 250)
    while read < 3 + 3 + 2:
        read += heard.get(timeout=LONGEST_S).records_in
    client.cancel().result(LONGEST_S)
    assert written(tmp_path) == FIRST


def test_a_bounded_source_is_read_if_the_others_have_no_records(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "lines").mkdir()
    env = environment(tmp_path, "available-now")
    heard: list[Any] = []
    env.add_epoch_listener(lambda epoch: heard.append((epoch.records_in, epoch.watermark)))
    count_events(env, tmp_path)
    env.execute("alone")
    assert heard == [(3, None)]
    assert written(tmp_path) == Counter()
