"""Sinks of unbounded jobs that are stream writers of Python Data Sources.

In Spark's protocol, `write` returns a message on executors, and `commit(messages, batch)` makes the output visible on the
driver. A commit may be repeated with the same batch. In opchain the messages are part of the checkpoint. If the driver
dies before the commit, the new driver commits the epoch with the messages of the checkpoint, and no task runs again.
"""

from __future__ import annotations

import importlib
import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.columnar.encode import RecordEncoder
from opchain.runtime.columnar.spark_types import SparkType, pyarrow
from opchain.runtime.columnar.type_mapping import columns_of
from opchain.runtime.errors import SinkError, short_repr
from opchain.runtime.functions.sink import BatchSinkWriter, Committer
from opchain.runtime.shipping.functions import ship
from opchain.runtime.spark.dataframes import arrow_sinks, schema_of_sink
from opchain.runtime.spark.formats import SparkSink

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.spark.stage_tasks import ShippedVertex


class StreamMessage(NamedTuple):
    """The message of a subtask for an epoch: the committable."""

    checkpoint_id: int
    message: Any


@dataclass(frozen=True, slots=True)
class ShippedStreamWriter:
    """A pickled stream writer. `schema` is the schema of the records, as JSON text."""

    writer: bytes
    schema: str

    def __call__(self, where: str) -> StreamSinkWriter:
        """The writer of one subtask; `where` is the operator, for errors."""
        return StreamSinkWriter(pickle.loads(self.writer), SparkType.parse(self.schema), where)


class StreamWriters:
    """The stream writers of a job.

    Raises:
        GraphError: The schema of a sink is unknown or invalid.
        UnsupportedFeatureError: The format of a sink has no stream writer.
    """

    def __init__(self, job: JobProgram, session: SparkSession) -> None:
        self._shipped: list[tuple[range, int, ShippedStreamWriter]] = []
        for vertex, operator, sink in arrow_sinks(job):
            assert isinstance(sink, SparkSink), f"{sink!r} is in an unbounded job"
            schema = schema_of_sink(operator, sink, session)
            columns = columns_of(SparkType.parse(schema)).to_json()
            writer = sink.bind_stream_writer(columns, operator.label)
            shipped = ShippedStreamWriter(ship(writer), schema)
            self._shipped.append((vertex.tasks, operator.index, shipped))

    def with_writers(self, vertex: ShippedVertex) -> ShippedVertex:
        """The vertex with the writers of its sinks."""
        writers = {
            index: writer for tasks, index, writer in self._shipped if vertex.first_task in tasks
        }
        return replace(vertex, sink_writers=writers) if writers else vertex


class StreamSinkWriter(BatchSinkWriter[Any]):
    """Collects the records of an epoch, and writes them at its end."""

    def __init__(self, writer: Any, record_type: SparkType, where: str) -> None:
        self._writer = writer
        self._encoder = RecordEncoder(record_type, where)
        self._columns = columns_of(record_type)
        self._where = where
        self._batches: list[Any] = []

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,  # noqa: ARG002 - the contract
    ) -> None:
        """Takes a batch.

        Raises:
            RecordSchemaError: A record does not fit the schema.
        """
        self._batches.append(self._encoder.batch(values))

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[StreamMessage]:
        """Writes the records. As in Spark, an epoch without records has a message, too.

        Raises:
            SinkError: The writer returned no message.
        """
        from pyspark.sql.datasource import (  # noqa: PLC0415 - it may be missing
            DataSourceStreamArrowWriter,
            WriterCommitMessage,
        )

        assert checkpoint_id is not None, "an unbounded job ends with no epoch of its own"
        batches, self._batches = self._batches, []
        takes_arrow = isinstance(self._writer, DataSourceStreamArrowWriter)
        message = self._writer.write(iter(batches) if takes_arrow else self._rows(batches))
        if not isinstance(message, WriterCommitMessage):
            raise SinkError(
                f"{self._where}: {type(self._writer).__name__}.write returned "
                f"{short_repr(message)}; it must return a WriterCommitMessage"
            )
        return (StreamMessage(checkpoint_id, message),)

    def _rows(self, batches: Sequence[Any]) -> Iterator[Any]:
        from pyspark.sql.types import StructType  # noqa: PLC0415

        to_rows = _conversion().ArrowTableToRowsConversion.convert
        schema = StructType.fromJson(self._columns.to_json())
        for batch in batches:
            table = pyarrow().Table.from_batches([batch])
            yield from to_rows(table, schema)


class StreamCommitter(Committer):
    """Commits on the driver, with the writer that the tasks use."""

    committable = StreamMessage

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def commit(self, committables: Sequence[StreamMessage]) -> None:
        """Commits an epoch. As in Spark, a repeated commit has the same number."""
        messages = [item.message for item in committables]
        self._writer.commit(messages, batch_number(committables[0].checkpoint_id))

    def abort(self, checkpoint_id: int) -> None:
        """Aborts an epoch that failed. Its messages are lost."""
        self._writer.abort([], batch_number(checkpoint_id))


def _conversion() -> Any:
    """The module of pyspark that converts Arrow batches to rows."""
    try:
        return importlib.import_module("pyspark.sql.conversion")
    except ModuleNotFoundError:  # Spark 4.0
        return importlib.import_module("pyspark.sql.connect.conversion")


def batch_number(checkpoint_id: int) -> int:
    """The number of the epoch's micro-batch: Spark counts from 0."""
    return checkpoint_id - 1
