"""Writes Parquet files in row groups, and reads them in record batches.

Several subtasks can read row groups of one file. With an Avro schema, records are dicts instead of rows.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.errors import UnsupportedFeatureError, imported
from opchain.runtime.files.file_systems import file_system_of
from opchain.runtime.formats.arrow_types import (
    arrow_array,
    arrow_schema,
    arrow_type,
    in_micros,
    pyarrow,
    python_values,
)
from opchain.runtime.formats.avro_files import AvroSchema, GenericRecordAvroTypeInfo
from opchain.runtime.formats.row_values import (
    columns_of_rows,
    moment_of,
    type_of_rows,
)
from opchain.runtime.formats.text_lines import BulkFormat, StreamFormat
from opchain.runtime.records.columns import Columns
from opchain.runtime.time import Instant
from opchain.runtime.types.row import Row
from opchain.runtime.types.serialization import BulkWriter, RowDataBulkWriterFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.configuration.configuration import Configuration
    from opchain.runtime.files.file_range import FileRange
    from opchain.runtime.files.malformed import MalformedRecords
    from opchain.runtime.types.record_types import RowTypeInfo
    from opchain.runtime.types.type_information import TypeInformation

ROWS_PER_GROUP = 128 * 1024
"""Number of rows to buffer before they are written as a row group. A subtask reads at least one row group."""

_COMPRESSION = "parquet.compression"
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZ4", "ZSTD", "BROTLI")


class ParquetBulkWriters:
    """Creates factories for FileSink. Flink: ParquetBulkWriters of PyFlink."""

    @staticmethod
    def for_row_type(
        row_type: Any, hadoop_config: Configuration | None = None, utc_timestamp: bool = False
    ) -> ParquetBulkWriterFactory:
        """Writes rows, tuples, and dicts or objects that have the names of the fields.

        Args:
            row_type: A row type of `DataTypes` or `Types`. As in Flink, BIG_DEC has 18 digits after the decimal point.
                Use DataTypes.DECIMAL for another number.
            hadoop_config: May set `parquet.compression`: UNCOMPRESSED, SNAPPY (the default), GZIP, LZ4, ZSTD or BROTLI.
            utc_timestamp: Whether datetimes without time zone are written as instants in UTC. Otherwise they are
                written as timestamps without zone. (Flink: as instants in the machine's zone.)

        Raises:
            TypeError: The argument is not a row type.
            UnsupportedFeatureError: The configuration has another option.
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
    """Creates writers of Parquet files."""

    def __init__(self, row_type: RowTypeInfo, codec: str, utc_timestamp: bool) -> None:
        super().__init__(row_type)
        self.codec = codec
        self.utc_timestamp = utc_timestamp

    def create(self, stream: BinaryIO) -> ParquetWriter:
        """Creates a writer to the open file."""
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
    """Buffers rows until there are enough for a row group.

    Args:
        stream: The open file.
        schema: The Arrow schema.
        codec: pyarrow's name of the compression.
        columns_of: Converts records to Arrow arrays.
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
        """Buffers a record."""
        self.add_batch([element])

    def add_batch(self, elements: Sequence[Any]) -> None:
        """Buffers records, and writes a row group if there are enough."""
        self._records += elements
        if len(self._records) >= ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        """Writes the buffered records as a row group."""
        records, self._records = self._records, []
        if not records:
            return
        pa = pyarrow("writing Parquet")
        batch = pa.RecordBatch.from_arrays(self._columns_of(records), schema=self._schema)
        self._open().write_batch(batch, row_group_size=len(records))

    def finish(self) -> None:
        """Writes the buffered records and the footer."""
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


_LOG = logging.getLogger("opchain.files")


class ParquetColumnarRowInputFormat(BulkFormat[Row]):
    """Reads the columns of a row type. Flink: ParquetColumnarRowInputFormat, which does not support nested types.

    Other columns of the file are not read. A missing column is None. A damaged file fails the job, because Parquet
    cannot skip single records.

    Args:
        row_type: A row type of `DataTypes` or `Types`. None (not in Flink) reads all columns with the types in the
            file.
        hadoop_config: Accepted as in PyFlink, but not used by pyarrow.
        batch_size: The number of rows to read at once.
        is_utc_timestamp: Whether an instant in the file that is declared as TIMESTAMP becomes a datetime in UTC.
            Otherwise it is in the machine's time zone.
        is_case_sensitive: Whether names must have the same case as in the file.

    Raises:
        TypeError: The argument is not a row type.
    """

    def __init__(
        self,
        row_type: Any = None,
        hadoop_config: Configuration | None = None,  # noqa: ARG002 - see above
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        where = "ParquetColumnarRowInputFormat"
        self.row_type = None if row_type is None else type_of_rows(row_type, where)
        self.batch_size = batch_size
        self.is_utc_timestamp = is_utc_timestamp
        self.is_case_sensitive = is_case_sensitive

    def can_be_cut(self, path: str) -> bool:  # noqa: ARG002 - all of them
        """Always True: files are split between row groups."""
        return True

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The declared type."""
        return self.row_type

    @property
    def row_names(self) -> Sequence[str]:
        """The names of the row type; none if the file decides."""
        return () if self.row_type is None else self.row_type.get_field_names()

    def read(
        self,
        part: FileRange,
        batch_size: int,
        malformed: MalformedRecords,  # noqa: ARG002 - see above
    ) -> Iterator[Sequence[Row]]:
        """Yields the rows of the row groups that start in the range."""
        size = min(batch_size, self.batch_size)
        with open_parquet(part.path) as file:
            groups = groups_in(file, part)
            names = file.schema_arrow.names
            if self.row_type is None:
                for batch in file.iter_batches(size, groups):
                    columns = [python_values(column, None, in_utc=True) for column in batch.columns]
                    yield Columns.of_fields(names, columns)
                return
            found = self._columns_in(names, part.path)
            wanted = [name for name in found if name is not None]
            row = sum(
                file.metadata.row_group(number).num_rows for number in range(min(groups, default=0))
            )
            for batch in file.iter_batches(size, groups, columns=sorted(set(wanted))):
                yield self._rows(batch, found, part.path, row)
                row += batch.num_rows

    def _columns_in(self, names: Sequence[str], path: str) -> list[str | None]:
        """The name of each column in the file. None for a missing column."""
        assert self.row_type is not None
        fields = self.row_type.get_field_names()
        if self.is_case_sensitive:
            return self._named({name: name for name in names}, fields, path)
        known = {name.lower(): name for name in names}
        if len(known) < len(names):
            raise ValueError(
                f"'{path}' has columns whose names differ in case only: {', '.join(names)}; read it with "
                "is_case_sensitive=True"
            )
        return self._named(known, [field.lower() for field in fields], path)

    @staticmethod
    def _named(known: dict[str, str], fields: Sequence[str], path: str) -> list[str | None]:
        for field in fields:
            if field not in known:
                # As in Flink, which also warns about it.
                _LOG.warning(
                    "'%s' has no column '%s', so this field is None in its rows; the file has %s",
                    path,
                    field,
                    ", ".join(f"'{name}'" for name in known.values()),
                )
        return [known.get(field) for field in fields]

    def _rows(
        self, batch: Any, found: Sequence[str | None], path: str, first_row: int
    ) -> Sequence[Row]:
        assert self.row_type is not None
        columns = []
        names = self.row_type.get_field_names()
        for name, in_file, kind in zip(names, found, self.row_type.get_field_types(), strict=True):
            if in_file is None:
                columns.append([None] * batch.num_rows)
                continue
            array = _cast(batch.column(in_file), kind, f"column '{name}' of '{path}'", first_row)
            columns.append(python_values(array, kind, in_utc=self.is_utc_timestamp))
        return Columns.of_fields(names, columns)


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """Opens a file with pyarrow.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    parquet = imported("pyarrow.parquet", "files", f"reading the Parquet file '{path}'")
    with file_system_of(path).open_input(path) as stream, parquet.ParquetFile(stream) as file:
        yield file


def groups_in(file: Any, part: FileRange) -> list[int]:
    """The numbers of the row groups that start in a range."""
    if part.stop is None:
        return list(range(file.num_row_groups))
    return [
        number
        for number in range(file.num_row_groups)
        if part.start <= _offset(file.metadata.row_group(number)) < part.stop
    ]


def _offset(group: Any) -> int:
    """The first byte of a row group: the start of its first page, which holds values or a dictionary.

    0 for a row group without columns.
    """
    pages: list[int | None] = []
    for number in range(group.num_columns):
        column = group.column(number)
        pages += [column.dictionary_page_offset, column.data_page_offset]
    return min((page for page in pages if page is not None), default=0)


def _cast(array: Any, kind: TypeInformation[Any], what: str, first_row: int) -> Any:
    """Casts a column to the declared type, except for time zones and time units, which are converted later.

    `first_row` is the number of the column's first row in the file, from 0.
    """
    pa = pyarrow("reading Parquet")
    wanted, array = arrow_type(kind), in_micros(array)
    if array.type == wanted or (
        pa.types.is_timestamp(wanted) and pa.types.is_timestamp(array.type)
    ):
        return array
    try:
        return array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        row = _first_misfit(array, wanted)
        place = "" if row is None else f" at row {first_row + row} (counted from 0)"
        raise ValueError(
            f"{what} is of type {array.type}, but the declared type is {kind!r}{place}: {error}"
        ) from error


def _first_misfit(array: Any, wanted: Any) -> int | None:
    """The first value that does not have the type. None if no single value is the reason."""
    pa = pyarrow("reading Parquet")
    for row in range(len(array)):
        try:
            array.slice(row, 1).cast(wanted)
        except pa.ArrowInvalid:  # noqa: PERF203 - once, at the end of a job
            return row
        except pa.ArrowNotImplementedError:
            return None
    return None


ROWS_PER_BATCH = 4096


class AvroParquetReaders:
    """Creates formats for FileSource. Flink: AvroParquetReaders of PyFlink."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> AvroParquetRecordFormat:
        """Reads records as dicts, with the fields of the schema.

        Raises:
            UnsupportedFeatureError: The schema has unions of several types.
        """
        return AvroParquetRecordFormat(schema)


class AvroParquetWriters:
    """Creates factories for FileSink. Flink: AvroParquetWriters of PyFlink."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> ParquetBulkWriterFactory:
        """Writes dicts (or other mappings) with the fields of the schema.

        Raises:
            UnsupportedFeatureError: The schema has unions of several types.
        """
        return ParquetBulkWriters.for_row_type(schema.row_type())


class AvroParquetRecordFormat(StreamFormat[dict[str, Any]]):
    """Reads records as dicts. Instants are datetimes with a time zone, as from Avro files."""

    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema
        self._rows = ParquetColumnarRowInputFormat(schema.row_type(), batch_size=ROWS_PER_BATCH)

    def can_be_cut(self, path: str) -> bool:
        """Always True: files are split between row groups."""
        return self._rows.can_be_cut(path)

    def get_produced_type(self) -> TypeInformation[Any]:
        """The type of records of the schema."""
        return GenericRecordAvroTypeInfo(self.schema)

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[dict[str, Any]]]:
        """Yields the records of the row groups that start in the range."""
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
