"""Avro in files and messages: schemas, the corresponding row types, readers and writers.

Files are read block by block. The sync marker after each block lets several subtasks read one file.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from uuid import UUID

from opchain.runtime.errors import UnsupportedFeatureError, imported, short_repr
from opchain.runtime.files.file_systems import file_system_of
from opchain.runtime.files.malformed import MalformedRecord, MalformedRecords
from opchain.runtime.formats.json_values import LISTS
from opchain.runtime.formats.row_values import columns_of_rows, instant_of, moment_of
from opchain.runtime.formats.text_lines import StreamFormat, reason_of
from opchain.runtime.time import Instant
from opchain.runtime.types.container_types import MapTypeInfo
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.row import Row, row_of
from opchain.runtime.types.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    SerializationSchema,
)
from opchain.runtime.types.time_types import BigDecimalTypeInfo
from opchain.runtime.types.type_information import TypeInformation
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opchain.runtime.files.file_range import FileRange


@dataclass(frozen=True)
class AvroSchema:
    """An Avro schema, given as JSON text. Flink: AvroSchema of PyFlink."""

    text: str

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Parses a schema.

        Raises:
            ValueError: The text is not JSON.
        """
        try:
            json.loads(json_schema)
        except ValueError as error:
            raise ValueError(
                f"the Avro schema is not JSON ({error}): {json_schema[:80]!r}"
            ) from error
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Parses the schema in a file on the driver.

        Raises:
            ValueError: The text is not JSON.
        """
        return AvroSchema.parse_string(Path(file_path).read_text(encoding="utf-8"))

    def __str__(self) -> str:
        return self.text

    def parsed(self) -> Any:
        """The schema, parsed by fastavro.

        Raises:
            MissingLibraryError: fastavro is not installed.
            ValueError: The text is not an Avro schema.
        """
        fastavro = imported("fastavro", "files", "Avro")
        try:
            return fastavro.parse_schema(json.loads(self.text))
        except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
            raise ValueError(f"{self.text[:80]!r} is not an Avro schema ({error!r})") from error

    def row_type(self) -> RowTypeInfo:
        """The row type with the fields of the record.

        Raises:
            UnsupportedFeatureError: The schema does not describe records, or has unions of several types.
        """
        found = _type_of(json.loads(self.text), {})
        if not isinstance(found, RowTypeInfo):
            raise UnsupportedFeatureError(f"{self.text[:80]!r} is not an Avro schema of records")
        return found


@dataclass(frozen=True, repr=False)
class GenericRecordAvroTypeInfo(TypeInformation[dict[str, Any]]):
    """The type of records of a schema, which are dicts. Flink: GenericRecordAvroTypeInfo."""

    schema: AvroSchema

    @property
    def java_class(self) -> str:
        """Avro's GenericRecord."""
        return "GenericRecord"

    def __repr__(self) -> str:
        return f"GenericRecord({self.schema})"


_PRIMITIVES: dict[str, TypeInformation[Any]] = {
    "boolean": Types.BOOLEAN(),
    "int": Types.INT(),
    "long": Types.LONG(),
    "float": Types.FLOAT(),
    "double": Types.DOUBLE(),
    "string": Types.STRING(),
    "bytes": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "fixed": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "enum": Types.STRING(),
}
_LOGICAL: dict[str, TypeInformation[Any]] = {
    "date": Types.SQL_DATE(),
    "time-millis": Types.SQL_TIME(),
    "time-micros": Types.SQL_TIME(),
    "timestamp-millis": Types.INSTANT(),
    "timestamp-micros": Types.INSTANT(),
    "local-timestamp-millis": Types.SQL_TIMESTAMP(),
    "local-timestamp-micros": Types.SQL_TIMESTAMP(),
}


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _type_of(
    schema: Any, named: dict[str, TypeInformation[Any]], space: str = ""
) -> TypeInformation[Any]:
    """The type of a schema.

    Args:
        schema: The parsed JSON.
        named: The types that the schema has named so far, by their full names.
        space: The namespace of names without one.
    """
    if isinstance(schema, list):
        kinds = [branch for branch in schema if branch != "null"]
        if len(kinds) != 1:
            raise UnsupportedFeatureError(
                f"the Avro union {schema} is not supported: only unions of null and one type are"
            )
        return _type_of(kinds[0], named, space)
    if isinstance(schema, str):
        found = _PRIMITIVES.get(schema) or named.get(_full_name(schema, space))
        if found is None:
            raise UnsupportedFeatureError(
                f"the Avro type {schema!r} is not supported; supported are records, arrays, maps, and "
                f"{', '.join(_PRIMITIVES)}"
            )
        return found
    if "name" not in schema:
        return _complex_type(schema, named, space)
    name = _full_name(schema["name"], schema.get("namespace", space))
    made = named[name] = _complex_type(schema, named, name.rpartition(".")[0])
    return made


def _complex_type(
    schema: Mapping[str, Any], named: dict[str, TypeInformation[Any]], space: str
) -> TypeInformation[Any]:
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return BigDecimalTypeInfo.of(schema["precision"], schema.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind == "record":
        fields = schema["fields"]
        types = [_type_of(field["type"], named, space) for field in fields]
        return Types.ROW_NAMED([field["name"] for field in fields], types)
    if kind == "array":
        return Types.LIST(_type_of(schema["items"], named, space))
    if kind == "map":
        return Types.MAP(Types.STRING(), _type_of(schema["values"], named, space))
    return _type_of(kind, named, space)


class _AvroMessages:
    """The schema of messages. Each process parses it at the first message."""

    def __init__(
        self, record_class: str | None = None, avro_schema_string: str | None = None
    ) -> None:
        self.schema = _schema_of(record_class, avro_schema_string)
        self._row_type = self.schema.row_type()
        self._parsed: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_parsed": None}


class AvroRowDeserializationSchema(_AvroMessages, DeserializationSchema["Row"]):
    """Reads a row from each message: one Avro record without a header.

    Flink: AvroRowDeserializationSchema.

    Args:
        record_class: A Java class; not supported.
        avro_schema_string: The schema as JSON.

    Raises:
        TypeError: The schema is missing.
        UnsupportedFeatureError: A Java class is given, or the schema has unions of several types.
    """

    def deserialize(self, message: bytes) -> Row:
        """Returns the row of a message.

        Raises:
            ValueError: The message is not a record of the schema.
        """
        fastavro = imported("fastavro", "files", "reading Avro")
        if self._parsed is None:
            self._parsed = self.schema.parsed()
        stream = io.BytesIO(message)
        try:
            record = fastavro.schemaless_reader(stream, self._parsed)
        except Exception as error:
            raise ValueError(
                f"the message {short_repr(message)} is not a record of the Avro schema "
                f"({reason_of(error)})"
            ) from error
        row: Row = _as_rows(self._row_type, record)
        return row

    def get_produced_type(self) -> RowTypeInfo:
        """Rows with the fields of the schema."""
        return self._row_type


class AvroRowSerializationSchema(_AvroMessages, SerializationSchema["Row"]):
    """Writes each row as a message: one Avro record without a header.

    Flink: AvroRowSerializationSchema. Arguments and errors are those of AvroRowDeserializationSchema.
    """

    def serialize(self, element: Row) -> bytes:
        """Returns the message for a row."""
        fastavro = imported("fastavro", "files", "writing Avro")
        if self._parsed is None:
            self._parsed = self.schema.parsed()
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, self._parsed, _as_records(self._row_type, element))
        return stream.getvalue()


def _schema_of(record_class: str | None, avro_schema_string: str | None) -> AvroSchema:
    if record_class is not None:
        raise UnsupportedFeatureError(
            f"the record class {record_class!r} is a Java class; pass the schema as "
            f"avro_schema_string"
        )
    if avro_schema_string is None:
        raise TypeError("a schema of Avro rows needs avro_schema_string")
    return AvroSchema.parse_string(avro_schema_string)


def _as_rows(kind: TypeInformation[Any], value: Any) -> Any:
    """Converts fastavro's values: records become Rows, datetimes with a zone Instants, and UUIDs texts."""
    if value is None:
        return None
    if isinstance(kind, RowTypeInfo):
        names = kind.get_field_names()
        fields = zip(names, kind.get_field_types(), strict=True)
        return row_of([_as_rows(of, value[name]) for name, of in fields], names)
    if isinstance(kind, LISTS) and isinstance(value, list):
        return [_as_rows(kind.element_type, item) for item in value]
    if isinstance(kind, MapTypeInfo):
        return {key: _as_rows(kind.value_type_info, item) for key, item in value.items()}
    if isinstance(value, UUID):
        return str(value)
    return instant_of(value) if isinstance(value, datetime) and value.tzinfo else value


def _as_records(kind: TypeInformation[Any], value: Any) -> Any:
    """Converts values for fastavro; the inverse of `_as_rows`."""
    if value is None:
        return None
    if isinstance(kind, RowTypeInfo):
        columns = columns_of_rows(kind, [value])
        fields = zip(kind.get_field_names(), kind.get_field_types(), columns, strict=True)
        return {name: _as_records(of, item) for name, of, (item,) in fields}
    if isinstance(kind, LISTS) and isinstance(value, list):
        return [_as_records(kind.element_type, item) for item in value]
    if isinstance(kind, MapTypeInfo):
        return {key: _as_records(kind.value_type_info, item) for key, item in value.items()}
    return moment_of(value) if isinstance(value, Instant) else value


_SEARCH_SIZE = 1 << 16
_MARKER_SIZE = 16
_VARINT_BYTES = 10


class AvroReaders:
    """Creates formats for FileSource. Not in PyFlink, which only has AvroInputFormat; the name follows Parquet's."""

    @staticmethod
    def for_generic_record(schema: AvroSchema | None = None) -> AvroRecordFormat:
        """Reads records as dicts, with the fields of the schema or, without one, of each file."""
        return AvroRecordFormat(schema)


class AvroRecordFormat(StreamFormat[dict[str, Any]]):
    """Reads records as dicts.

    If a block cannot be decoded, the whole block counts as malformed. If it is skipped, all its records are counted.
    Flink: AvroInputFormat, which stops reading a file at such a block.
    """

    def __init__(self, schema: AvroSchema | None) -> None:
        self.schema = schema

    def can_be_cut(self, path: str) -> bool:  # noqa: ARG002 - all of them; they are compressed inside
        """Always True: files are split between blocks."""
        return True

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The type of records of the schema."""
        return None if self.schema is None else GenericRecordAvroTypeInfo(self.schema)

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[dict[str, Any]]]:
        """Yields the records of the blocks whose preceding sync marker starts in the range."""
        fastavro = imported("fastavro", "files", f"reading the Avro file '{part.path}'")
        schema = None if self.schema is None else self.schema.parsed()
        with file_system_of(part.path).open_input(part.path) as file:
            header = _read_header(fastavro, file)
            position = _block_behind(file, header, part.start)
            stop = None if part.stop is None else _block_behind(file, header, part.stop)
            blocks: Iterator[Any] | None = None
            begin = position
            while stop is None or position < stop:
                if blocks is None:
                    begin = position
                    blocks = fastavro.block_reader(_Section(header.data, file, begin, stop), schema)
                try:
                    block = next(blocks, None)
                    records = [] if block is None else list(block)
                except Exception as error:  # noqa: BLE001 - of all kinds: the file's bytes made it
                    place = f"block at byte {position}"
                    record = MalformedRecord(part.path, place, "an Avro block", reason_of(error))
                    malformed.take(record, error, _count_at(file, position))
                    position, blocks = _block_behind(file, header, position), None
                    continue
                if block is None:
                    return
                position = begin + block.offset - len(header.data) + block.size
                for first in range(0, len(records), batch_size):
                    yield records[first : first + batch_size]


class _Header(NamedTuple):
    """The header of a file. Its last bytes are the sync marker."""

    data: bytes

    @property
    def marker(self) -> bytes:
        return self.data[-_MARKER_SIZE:]


class _Section:
    """A file object that consists of the header and some of the blocks of an Avro file."""

    def __init__(self, header: bytes, file: BinaryIO, start: int, stop: int | None) -> None:
        self._header = header
        self._file = file
        self._left = None if stop is None else stop - start
        self._position = 0
        file.seek(start)

    def read(self, size: int) -> bytes:
        """Returns the next bytes, and fewer at the end."""
        begin, self._position = self._position, self._position + size
        if begin < len(self._header):
            return self._header[begin : self._position]
        if self._left is not None:
            size = min(size, self._left)
            self._left -= size
        return self._file.read(size)

    def tell(self) -> int:
        """The number of bytes that were read."""
        return self._position


def _read_header(fastavro: Any, file: BinaryIO) -> _Header:
    fastavro.block_reader(file)
    end = file.tell()
    file.seek(0)
    return _Header(file.read(end))


def _block_behind(file: BinaryIO, header: _Header, position: int) -> int:
    """The start of the first block whose sync marker starts at this position or later. Else the end of the file."""
    first = len(header.data) - _MARKER_SIZE
    if position <= first:
        return len(header.data)
    file.seek(position)
    kept = b""
    while chunk := file.read(_SEARCH_SIZE):
        window = kept + chunk
        found = window.find(header.marker)
        if found >= 0:
            return position - len(kept) + found + _MARKER_SIZE
        position += len(chunk)
        kept = window[-(_MARKER_SIZE - 1) :]
    return position


def _count_at(file: BinaryIO, position: int) -> int:
    """The number of records in the header of a block. 1 if the number is invalid."""
    file.seek(position)
    number = 0
    for index, byte in enumerate(file.read(_VARINT_BYTES)):
        number |= (byte & 0x7F) << (7 * index)
        if not byte & 0x80:
            break
    count = (number >> 1) ^ -(number & 1)
    return count if count > 0 else 1


class AvroBulkWriters:
    """Creates factories for FileSink. Flink: AvroBulkWriters of PyFlink."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> AvroBulkWriterFactory:
        """Writes dicts (or other mappings) with the fields of the schema."""
        return AvroBulkWriterFactory(schema)


class AvroBulkWriterFactory(BulkWriterFactory[Any]):
    """Creates writers of Avro files. As in Flink, the files are not compressed."""

    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema

    def create(self, stream: BinaryIO) -> AvroBulkWriter:
        """Creates a writer to the open file.

        Raises:
            MissingLibraryError: fastavro is not installed.
        """
        return AvroBulkWriter(self.schema, stream)


class AvroBulkWriter(BulkWriter[Any]):
    """Buffers records, and writes them as blocks."""

    def __init__(self, schema: AvroSchema, stream: BinaryIO) -> None:
        fastavro_write = imported("fastavro.write", "files", "writing Avro")
        invalid = imported("fastavro.validation", "files", "writing Avro").ValidationError
        self._refusals = (ValueError, KeyError, TypeError, AttributeError, OverflowError, invalid)
        # A hash of the schema as sync marker: unlike a random marker, it is the same in every run.
        marker = hashlib.md5(schema.text.encode(), usedforsecurity=False).digest()
        self._writer = fastavro_write.Writer(
            stream, schema.parsed(), sync_marker=marker, validator=True
        )

    def add_element(self, element: Any) -> None:
        """Adds a record.

        Raises:
            ValueError: It is not a record of the schema.
        """
        try:
            self._writer.write(element)
        except self._refusals as error:
            raise ValueError(f"{element!r} is not a record of the Avro schema: {error}") from error

    def flush(self) -> None:
        """Writes the buffered records as a block."""
        self._writer.flush()

    def finish(self) -> None:
        """Writes the last block."""
        self._writer.flush()
