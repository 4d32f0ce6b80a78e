"""Avro in messages: rows to bytes and back."""

from __future__ import annotations

import io
from datetime import datetime
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError, imported, short_repr
from opchain.runtime.formats.avro_schema import AvroSchema
from opchain.runtime.formats.json_values import LISTS
from opchain.runtime.formats.line_records import reason_of
from opchain.runtime.formats.row_values import instant_of, moment_of, rows_of_columns
from opchain.runtime.time import Instant
from opchain.runtime.types.container_types import MapTypeInfo
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.serialization import DeserializationSchema, SerializationSchema

if TYPE_CHECKING:
    from opchain.runtime.types.row import Row
    from opchain.runtime.types.type_information import TypeInformation


class AvroRowDeserializationSchema(DeserializationSchema["Row"]):
    """A row from each message: one record of the schema, without a header.

    Flink: AvroRowDeserializationSchema.

    Args:
        record_class: A class of Java's; not available.
        avro_schema_string: The schema, as JSON.

    Raises:
        TypeError: There is no schema.
        UnsupportedFeatureError: A class of Java is named, or the schema has unions of several types.
    """

    def __init__(
        self, record_class: str | None = None, avro_schema_string: str | None = None
    ) -> None:
        self.schema = _schema_of(record_class, avro_schema_string)
        self._row_type = self.schema.row_type()
        self._parsed: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_parsed": None}

    def deserialize(self, message: bytes) -> Row:
        """The row.

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


class AvroRowSerializationSchema(SerializationSchema["Row"]):
    """A message from each row: one record of the schema, without a header.

    Flink: AvroRowSerializationSchema. Arguments and errors are those of AvroRowDeserializationSchema.
    """

    def __init__(
        self, record_class: str | None = None, avro_schema_string: str | None = None
    ) -> None:
        self.schema = _schema_of(record_class, avro_schema_string)
        self._row_type = self.schema.row_type()
        self._parsed: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_parsed": None}

    def serialize(self, element: Row) -> bytes:
        """The message."""
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
    """What fastavro gives, with rows for records, and instants for datetimes with a zone."""
    if value is None:
        return None
    if isinstance(kind, RowTypeInfo):
        names = kind.get_field_names()
        fields = zip(names, kind.get_field_types(), strict=True)
        return rows_of_columns(names, [[_as_rows(of, value[name])] for name, of in fields])[0]
    if isinstance(kind, LISTS) and isinstance(value, list):
        return [_as_rows(kind.element_type, item) for item in value]
    if isinstance(kind, MapTypeInfo):
        return {key: _as_rows(kind.value_type_info, item) for key, item in value.items()}
    return instant_of(value) if isinstance(value, datetime) and value.tzinfo else value


def _as_records(kind: TypeInformation[Any], value: Any) -> Any:
    """The other way round."""
    if value is None:
        return None
    if isinstance(kind, RowTypeInfo):
        fields = zip(
            kind.get_field_names(), kind.get_field_types(), kind.values_of(value), strict=True
        )
        return {name: _as_records(of, item) for name, of, item in fields}
    if isinstance(kind, LISTS) and isinstance(value, list):
        return [_as_records(kind.element_type, item) for item in value]
    if isinstance(kind, MapTypeInfo):
        return {key: _as_records(kind.value_type_info, item) for key, item in value.items()}
    return moment_of(value) if isinstance(value, Instant) else value
