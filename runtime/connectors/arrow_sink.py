"""Sinks whose records become DataFrames.

The Arrow batches of a bounded job become a DataFrame without passing through the driver. An unbounded job adds Parquet
files to a folder, which a streaming DataFrame reads.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.columnar.encode import RecordEncoder
from opchain.runtime.columnar.spark_types import SparkType, arrow_schema
from opchain.runtime.columnar.type_mapping import columns_of, spark_type_of
from opchain.runtime.connectors.file_buckets import BucketAssigner, OutputFileConfig, RollingPolicy
from opchain.runtime.connectors.file_sink import FileSink
from opchain.runtime.errors import InternalError
from opchain.runtime.formats.parquet import ParquetWriter
from opchain.runtime.functions.sink import BatchSinkWriter, Sink, SinkWriter
from opchain.runtime.types.serialization import BulkWriterFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.types.type_information import TypeInformation


class ArrowWriter(BatchSinkWriter[Any]):
    """Sends each batch of records as an Arrow batch.

    Args:
        record_type: The schema of the records.
        where: The operator, for errors.
        send: Takes the bytes of a record batch.
    """

    def __init__(self, record_type: SparkType, where: str, send: Callable[[bytes], None]) -> None:
        self._encoder = RecordEncoder(record_type, where)
        self._send = send

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,  # noqa: ARG002 - the contract
    ) -> None:
        """Sends a batch.

        Raises:
            RecordSchemaError: A record does not match the schema.
        """
        self._send(self._encoder.batch(values).serialize().to_pybytes())


class ArrowSink(Sink[Any]):
    """A sink whose Arrow batches the engine collects."""

    reads_timestamps = False
    changes_records = False

    def __init__(self, schema: Any = None) -> None:
        self.schema = schema

    @property
    def schema_json(self) -> Any:
        """The schema as Spark's JSON; None if it is unknown, or DDL text, which only Spark can read."""
        if isinstance(self.schema, SparkType):
            return self.schema.to_json()
        return (
            None if self.schema is None or isinstance(self.schema, str) else self.schema.jsonValue()
        )

    def for_type(self, record_type: TypeInformation[Any]) -> Self:
        """The sink with the schema of a declared type, unless it has one.

        Raises:
            GraphError: The type has no columns.
        """
        if self.schema is not None:
            return self
        typed = object.__new__(type(self))  # copy() would call __getstate__, which omits attributes
        typed.__dict__.update(self.__dict__)
        typed.schema = spark_type_of(record_type)
        return typed

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        """Raises an error: only an engine that takes Arrow batches can write the records.

        Raises:
            InternalError: Always.
        """
        raise InternalError(
            f"{self!r} was asked for a writer of subtask {context.get_index_of_this_subtask()}, but writes with Arrow"
        )

    def arrow_writer(
        self, schema: str, where: str, send: Callable[[bytes], None]
    ) -> SinkWriter[Any]:
        """The writer of a subtask. `schema` is JSON text; the driver has converted DDL text."""
        return ArrowWriter(SparkType.parse(schema), where, send)


class WrittenSink(ArrowSink):
    """A sink whose records are written as a DataFrame when all tasks have succeeded."""

    @abstractmethod
    def write(self, dataframe: Any) -> None:
        """Writes the records, on the driver."""


class DataFrameSink(ArrowSink):
    """The end of a stream that becomes a DataFrame."""

    def __repr__(self) -> str:
        return "DataFrameSink()"


_CODEC = "SNAPPY"


class ColumnFileSink(FileSink[Any]):
    """Writes records as Parquet files with columns of Spark's types: one file per subtask and epoch.

    A file appears complete, when its epoch is complete. So a reader that lists the folder and skips files that it has
    read before reads every record exactly once.

    Args:
        folder: Path or URL.
        record_type: As for RecordEncoder.
        where: The operator, for errors.
    """

    reads_timestamps = False
    changes_records = False

    def __init__(self, folder: str, record_type: SparkType, where: str) -> None:
        super().__init__(
            folder,
            ColumnWriters(record_type, where),
            BucketAssigner.base_path_bucket_assigner(),
            RollingPolicy.on_checkpoint_rolling_policy(),
            OutputFileConfig("part", ".parquet"),
        )

    def __repr__(self) -> str:
        return f"ColumnFileSink({self.base_path!r})"


class ColumnWriters(BulkWriterFactory[Any]):
    """Makes the writer of each file."""

    def __init__(self, record_type: SparkType, where: str) -> None:
        self._record_type = record_type
        self._where = where

    def create(self, stream: BinaryIO) -> ParquetWriter:
        """A writer into the open file."""
        encoder = RecordEncoder(self._record_type, self._where)

        def columns(records: Sequence[Any]) -> list[Any]:
            found: list[Any] = encoder.batch(records).columns
            return found

        return ParquetWriter(stream, arrow_schema(columns_of(self._record_type)), _CODEC, columns)
