"""Parquet files, written row group by row group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.errors import UnsupportedFeatureError, imported
from opchain.runtime.formats.arrow_types import arrow_array, arrow_schema, pyarrow
from opchain.runtime.formats.row_values import columns_of_rows, type_of_rows
from opchain.runtime.types.serialization import BulkWriter, RowDataBulkWriterFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.configuration.configuration import Configuration
    from opchain.runtime.types.record_types import RowTypeInfo

ROWS_PER_GROUP = 128 * 1024
"""Rows that stay in memory until they are written, as one group: what one subtask reads at least."""

_COMPRESSION = "parquet.compression"
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "ZSTD", "BROTLI")


class ParquetBulkWriters:
    """Makes factories for FileSink. Flink: ParquetBulkWriters of PyFlink."""

    @staticmethod
    def for_row_type(
        row_type: Any, hadoop_config: Configuration | None = None, utc_timestamp: bool = False
    ) -> ParquetBulkWriterFactory:
        """Writes rows, tuples, dicts or objects with the fields' names.

        Args:
            row_type: A type of rows of `DataTypes` or `Types`. A plain BIG_DEC has 18 digits behind the
                point, as Flink's; DataTypes.DECIMAL says how many.
            hadoop_config: May have `parquet.compression`: UNCOMPRESSED, SNAPPY (the default), GZIP, LZ4,
                ZSTD or BROTLI.
            utc_timestamp: Datetimes without a zone are written as instants, as if in UTC; else as what
                they are, without a zone. (Flink: as if in the machine's zone.)

        Raises:
            TypeError: It is not a type of rows.
            UnsupportedFeatureError: The configuration asks for something else.
        """
        where = "ParquetBulkWriters.for_row_type"
        codec = _codec({} if hadoop_config is None else hadoop_config.to_dict())
        return ParquetBulkWriterFactory(type_of_rows(row_type, where), codec, utc_timestamp)


def _codec(options: dict[str, str]) -> str:
    unknown = sorted(options.keys() - {_COMPRESSION})
    if unknown:
        raise UnsupportedFeatureError(
            f"Parquet files are written by pyarrow, which has no option '{unknown[0]}'; the only "
            f"supported Hadoop option is {_COMPRESSION}"
        )
    codec = options.get(_COMPRESSION, "SNAPPY").upper()
    if codec not in _CODECS:
        raise ValueError(f"{_COMPRESSION} is '{codec}'; it must be one of {', '.join(_CODECS)}")
    return "NONE" if codec == "UNCOMPRESSED" else codec


class ParquetBulkWriterFactory(RowDataBulkWriterFactory):
    """Makes writers of Parquet files."""

    def __init__(self, row_type: RowTypeInfo, codec: str, utc_timestamp: bool) -> None:
        super().__init__(row_type)
        self.codec = codec
        self.utc_timestamp = utc_timestamp

    def create(self, stream: BinaryIO) -> ParquetWriter:
        """A writer into the open file."""
        row_type = self.get_row_type()
        schema = arrow_schema(row_type)
        if self.utc_timestamp:
            schema = _with_instants(schema)

        def columns_of(records: Sequence[Any]) -> list[Any]:
            columns = columns_of_rows(row_type, records)
            kinds = row_type.get_field_types()
            return [
                arrow_array(kind, column).cast(field.type)
                for kind, column, field in zip(kinds, columns, schema, strict=True)
            ]

        return ParquetWriter(stream, schema, self.codec, columns_of)


class ParquetWriter(BulkWriter[Any]):
    """Keeps rows until there are enough for a group.

    Args:
        stream: The open file.
        schema: Arrow's.
        codec: pyarrow's name of the compression.
        columns_of: What makes Arrow's arrays of records.
    """

    def __init__(
        self,
        stream: BinaryIO,
        schema: Any,
        codec: str,
        columns_of: Callable[[Sequence[Any]], list[Any]],
    ) -> None:
        self._schema = schema
        self._columns_of = columns_of
        self._records: list[Any] = []
        self._stream = stream
        self._codec = codec
        self._writer: Any = None

    def add_element(self, element: Any) -> None:
        """Keeps one record."""
        self.add_batch([element])

    def add_batch(self, elements: Sequence[Any]) -> None:
        """Keeps records, and writes a group where there are enough."""
        self._records += elements
        if len(self._records) >= ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        """Writes what stayed here, as a group."""
        records, self._records = self._records, []
        if not records:
            return
        pa = pyarrow("writing Parquet")
        batch = pa.RecordBatch.from_arrays(self._columns_of(records), schema=self._schema)
        self._open().write_batch(batch, row_group_size=len(records))

    def finish(self) -> None:
        """Writes what stayed here, and the footer."""
        self.flush()
        self._open().close()

    def _open(self) -> Any:
        if self._writer is None:
            parquet = imported("pyarrow.parquet", "files", "writing Parquet")
            self._writer = parquet.ParquetWriter(
                self._stream, self._schema, compression=self._codec
            )
        return self._writer


def _with_instants(schema: Any) -> Any:
    pa = pyarrow("writing Parquet")
    return pa.schema(
        [
            (
                field.name,
                pa.timestamp("us", "UTC") if pa.types.is_timestamp(field.type) else field.type,
            )
            for field in schema
        ]
    )
