"""A streaming job to be killed: counts and windows over files of rows, written to files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from opchain.common import Configuration, Duration, Encoder, Time, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.spark.formats import SparkSource

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = "key string, time bigint, value bigint"


class Count(KeyedProcessFunction[str, Any, str]):
    """Counts the records of a key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value['key']} {self.count.value()}"


def sink(path: str) -> Any:
    rows = FileSink.for_row_format(path, Encoder.simple_string_encoder())
    return rows.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


def main(source: str, target: str, checkpoints: str) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", checkpoints)
    configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(50)
    ).with_timestamp_assigner(lambda row, _: row["time"])
    rows = env.from_source(
        SparkSource(
            "json", {"maxFilesPerTrigger": "1"}, schema=SCHEMA, path=source, is_streaming=True
        ),
        strategy,
        "rows",
    ).uid("rows")
    counts = rows.key_by(lambda row: row["key"]).process(Count()).uid("count")
    counts.sink_to(sink(f"{target}/counts")).uid("counts")
    pairs = rows.map(lambda row: (row["key"], row["value"])).key_by(lambda pair: pair[0])
    windows = pairs.window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
    sums = windows.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("sums").map(str)
    sums.sink_to(sink(f"{target}/sums")).uid("files")
    env.execute("killed")


if __name__ == "__main__":
    main(*sys.argv[1:])
