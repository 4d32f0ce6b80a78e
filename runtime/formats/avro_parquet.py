"""Parquet files of Avro's records: dicts instead of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.formats.avro_schema import AvroSchema, GenericRecordAvroTypeInfo
from opchain.runtime.formats.file_format import StreamFormat
from opchain.runtime.formats.parquet_reader import ParquetColumnarRowInputFormat
from opchain.runtime.formats.parquet_writer import ParquetBulkWriterFactory, ParquetBulkWriters
from opchain.runtime.formats.row_values import moment_of
from opchain.runtime.time import Instant
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.files.file_range import FileRange
    from opchain.runtime.files.malformed import MalformedRecords
    from opchain.runtime.types.type_information import TypeInformation

ROWS_PER_BATCH = 4096


class AvroParquetReaders:
    """Makes formats for FileSource. Flink: AvroParquetReaders of PyFlink."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> AvroParquetRecordFormat:
        """Records as dicts, with the fields of the schema.

        Raises:
            UnsupportedFeatureError: The schema has unions of several types.
        """
        return AvroParquetRecordFormat(schema)


class AvroParquetWriters:
    """Makes factories for FileSink. Flink: AvroParquetWriters of PyFlink."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> ParquetBulkWriterFactory:
        """Writes dicts (or what behaves like them) with the fields of the schema.

        Raises:
            UnsupportedFeatureError: The schema has unions of several types.
        """
        return ParquetBulkWriters.for_row_type(schema.row_type())


class AvroParquetRecordFormat(StreamFormat[dict[str, Any]]):
    """Reads records as dicts; points of time are datetimes with a zone, as from Avro files."""

    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema
        self._rows = ParquetColumnarRowInputFormat(schema.row_type(), batch_size=ROWS_PER_BATCH)

    def can_be_cut(self, path: str) -> bool:
        """Always, between row groups."""
        return self._rows.can_be_cut(path)

    def get_produced_type(self) -> TypeInformation[Any]:
        """Records of the schema."""
        return GenericRecordAvroTypeInfo(self.schema)

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[dict[str, Any]]]:
        """The records of the row groups that begin in the range."""
        for rows in self._rows.read(part, batch_size, malformed):
            yield list(map(_record_of, rows))


def _record_of(value: Any) -> Any:
    if isinstance(value, Row):
        return {name: _record_of(item) for name, item in value.as_dict().items()}
    if isinstance(value, list):
        return [_record_of(item) for item in value]
    if isinstance(value, dict):
        return {key: _record_of(item) for key, item in value.items()}
    return moment_of(value) if isinstance(value, Instant) else value
