"""A job to disturb: a running count, event-time windows and processing-time timers, from files to files.

`python disturbed_job.py SOURCE TARGET CHECKPOINTS` runs until it is killed; with `--until-read` it ends when all
files are read. `--sink` writes to PostgreSQL or Kafka, or collects in the driver, instead of files. `expected_output`
computes the expected output.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opchain.common import (
    Configuration,
    Duration,
    Encoder,
    Row,
    SimpleStringSchema,
    Time,
    Types,
    WatermarkStrategy,
)
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from opchain.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from opchain.datastream.functions import KeyedProcessFunction, MapFunction
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.spark.formats import SparkSource

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = "key string, time bigint, value bigint"

WINDOW_MS = 5_000
OUT_OF_ORDER_MS = 120_000
"""So many files may come in one epoch, in any order: a file is a second of event time."""

GATHER_MS = 2_000

COUNTS, SUMS, GATHERED = "counts", "sums", "gathered"
OUTPUTS = (COUNTS, SUMS, GATHERED)
SINKS = ("files", "postgresql", "kafka", "collected")

END = -1
"""The value of the last record of each key, behind which nothing is kept back."""


class Count(KeyedProcessFunction[str, Any, str]):
    """Counts the records of a key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value['key']} {self.count.value()} {value['value']}"


class FailAtFirst(MapFunction[Any, Any]):
    """Passes rows on; fails at one of them until a folder has the given number of files."""

    def __init__(self, value: int, times: int, folder: str) -> None:
        self.value = value
        self.times = times
        self.folder = Path(folder)

    def map(self, value: Any) -> Any:
        if value["value"] == self.value:
            for number in range(self.times):
                with suppress(FileExistsError):
                    (self.folder / str(number)).touch(exist_ok=False)
                    raise RuntimeError(f"failure {number + 1} of {self.times}")
        return value


class Gather(KeyedProcessFunction[str, Any, str]):
    """Collects the values of a key for a while, by the clock, and emits them together."""

    def open(self, runtime_context: Any) -> None:
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))
        self.until = runtime_context.get_state(ValueStateDescriptor("until", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        self.waiting.add(value["value"])
        if value["value"] == END:
            yield from self._together(ctx.get_current_key())
        elif self.until.value() is None:
            timers = ctx.timer_service()
            until = timers.current_processing_time() + GATHER_MS
            timers.register_processing_time_timer(until)
            self.until.update(until)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        if self.until.value() == timestamp:
            yield from self._together(ctx.get_current_key())

    def _together(self, key: str) -> Iterator[str]:
        yield f"{key} {' '.join(map(str, self.waiting.get()))}"
        self.waiting.clear()
        self.until.clear()


def write(output: str, lines: Any, kind: str, target: str) -> None:
    """Writes lines of text to an output: files below `target`, a table of the database `target`, or a topic."""
    uid = f"{output} files"
    if kind == "files":
        files = FileSink.for_row_format(f"{target}/{output}", Encoder.simple_string_encoder())
        files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        lines.sink_to(files.build()).uid(uid)
    elif kind == "postgresql":
        row = Types.ROW([Types.STRING()])
        database = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(target).build()
        table = JdbcSink.sink(f"INSERT INTO {output} VALUES (?)", row, database)
        lines.map(Row, row).add_sink(table).uid(uid)
    else:
        servers, _, prefix = target.partition("/")
        serializer = KafkaRecordSerializationSchema.builder().set_topic(prefix + output)
        serializer.set_value_serialization_schema(SimpleStringSchema())
        topic = KafkaSink.builder().set_bootstrap_servers(servers)
        topic.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        topic.set_transactional_id_prefix(prefix + output).set_record_serializer(serializer.build())
        lines.sink_to(topic.build()).uid(uid)


def collect(outputs: dict[str, Any], target: Path) -> None:
    """Collects the lines of all outputs in the driver, which writes them to files."""
    named = [lines.map(lambda line, name=name: f"{name} {line}") for name, lines in outputs.items()]
    with named[0].union(*named[1:]).execute_and_collect("disturbed") as collected:
        for line in collected:
            name, text = line.split(" ", 1)
            (target / name).mkdir(parents=True, exist_ok=True)
            with (target / name / "collected").open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("source", "target", "checkpoints"):
        parser.add_argument(name)
    parser.add_argument("--until-read", action="store_true", help="end when all files are read")
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--files", type=int, default=20, help="to read in an epoch, at most")
    parser.add_argument("--sink", choices=SINKS, default="files")
    parser.add_argument("--backend", choices=("hashmap", "rocksdb"), default="hashmap")
    parser.add_argument("--fail-at", type=int, help="a value")
    parser.add_argument("--fail-times", type=int, help="so many times")
    parser.add_argument("--fail-folder", help="where failures are counted")
    given = parser.parse_args()
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", given.checkpoints)
    configuration.set_string("state.backend.type", given.backend)
    if given.until_read:
        configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(given.parallelism)
    env.set_max_parallelism(32)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(OUT_OF_ORDER_MS)
    ).with_timestamp_assigner(lambda row, _: row["time"])
    files = SparkSource(
        "json",
        {"maxFilesPerTrigger": str(given.files)},
        schema=SCHEMA,
        path=given.source,
        is_streaming=True,
    )
    rows = env.from_source(files, strategy, "rows").set_parallelism(1).uid("rows")
    if given.fail_at is not None:
        failing = FailAtFirst(given.fail_at, given.fail_times, given.fail_folder)
        rows = rows.map(failing).set_parallelism(1).uid("failing")
    keyed = rows.key_by(lambda row: row["key"])
    triples = rows.map(lambda row: (row["key"], row["value"], 1)).key_by(lambda triple: triple[0])
    windows = triples.window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
    sums = windows.reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2])).uid("sum")
    outputs = {
        COUNTS: keyed.process(Count(), Types.STRING()).uid("count"),
        GATHERED: keyed.process(Gather(), Types.STRING()).uid("gather"),
        SUMS: sums.map(lambda triple: f"{triple[0]} {triple[1]} {triple[2]}", Types.STRING()),
    }
    if given.sink == "collected":
        collect(outputs, Path(given.target))
        return
    for output, lines in outputs.items():
        write(output, lines, given.sink, given.target)
    env.execute("disturbed")


if __name__ == "__main__":
    main()
