"""A streaming job to be killed, with every kind of sink: counts by key in tables, files and a Python Data Source."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

from opchain.common import Configuration, Encoder, Row, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.spark.formats import SparkSource
from opchain.spark import SparkSink

if TYPE_CHECKING:
    from collections.abc import Iterator

ROW = Types.ROW_NAMED(["key", "n"], [Types.STRING(), Types.INT()])


class Rows(WriterCommitMessage):
    """The records of a subtask."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows


class Folder(DataSource):
    """A file per micro-batch."""

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's
        return FolderWriter(self.options["path"])


class FolderWriter(DataSourceStreamWriter):
    """Names the file by the micro-batch, so that a repeated commit finds it."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return Rows([list(row) for row in iterator])

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 - Spark's
        self.path.mkdir(exist_ok=True)
        rows = [row for message in messages for row in message.rows]
        (self.path / f"{batchId}.json").write_text(json.dumps(rows))


class Count(KeyedProcessFunction[str, Any, Row]):
    """Counts the records of a key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Row]:
        self.count.update((self.count.value() or 0) + 1)
        yield Row(value[0], self.count.value())


def main(folder: str, url: str) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", f"{folder}/checkpoints")
    configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = SparkSource(
        "json",
        {"maxFilesPerTrigger": "1"},
        schema="key string",
        path=f"{folder}/input",
        is_streaming=True,
    )
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    counts = rows.key_by(lambda row: row[0]).process(Count(), ROW).uid("count")
    database = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()
    insert = "INSERT INTO seen VALUES (?, ?)"
    counts.add_sink(JdbcSink.sink(insert, ROW, database)).uid("seen")
    upsert = (
        "INSERT INTO counts VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET n = excluded.n, "
        "changes = counts.changes + 1"
    )
    counts.add_sink(JdbcSink.sink(upsert, ROW, database)).uid("counts")
    files = FileSink.for_row_format(f"{folder}/files", Encoder.simple_string_encoder())
    files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    counts.map(lambda row: f"{row[0]} {row[1]}").sink_to(files.build()).uid("files")
    counts.sink_to(SparkSink(Folder, path=f"{folder}/folder")).uid("folder")
    env.execute("killed sinks")


if __name__ == "__main__":
    main(*sys.argv[1:])
