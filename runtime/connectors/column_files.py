"""A folder of Parquet files that a streaming DataFrame reads while an unbounded job adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.columnar.arrow_types import arrow_schema
from opchain.runtime.columnar.encode import RecordEncoder
from opchain.runtime.columnar.type_mapping import columns_of
from opchain.runtime.connectors.file_buckets import BucketAssigner, OutputFileConfig, RollingPolicy
from opchain.runtime.connectors.file_sink import FileSink
from opchain.runtime.formats.parquet import ParquetWriter
from opchain.runtime.types.serialization import BulkWriterFactory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.columnar.spark_types import SparkType

_CODEC = "SNAPPY"


class ColumnFileSink(FileSink[Any]):
    """Writes records as columns of Spark's types; a file per subtask and epoch that has records.

    A file shows when its epoch is complete, whole and once: who lists the folder, and remembers which files it
    has seen, reads every record exactly once.

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
