"""Avro's schemas, and the types of rows that stand for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError, imported
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.time_types import BigDecimalTypeInfo
from opchain.runtime.types.type_information import TypeInformation
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class AvroSchema:
    """A schema by its JSON text. Flink: AvroSchema of PyFlink."""

    text: str

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema that a text says.

        Raises:
            ValueError: It is not JSON.
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
        """The schema in a file of the driver's.

        Raises:
            ValueError: It is not JSON.
        """
        return AvroSchema.parse_string(Path(file_path).read_text(encoding="utf-8"))

    def __str__(self) -> str:
        return self.text

    def parsed(self) -> Any:
        """The schema as fastavro uses it.

        Raises:
            MissingLibraryError: fastavro is not installed.
            ValueError: It is not a schema of Avro.
        """
        fastavro = imported("fastavro", "files", "Avro")
        try:
            return fastavro.parse_schema(json.loads(self.text))
        except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType) as error:
            raise ValueError(f"{self.text[:80]!r} is not an Avro schema ({error!r})") from error

    def row_type(self) -> RowTypeInfo:
        """The type of rows with the record's fields.

        Raises:
            UnsupportedFeatureError: The schema is none of records, or has unions of several types.
        """
        found = _type_of(json.loads(self.text), {})
        if not isinstance(found, RowTypeInfo):
            raise UnsupportedFeatureError(f"{self.text[:80]!r} is not an Avro schema of records")
        return found


@dataclass(frozen=True, repr=False)
class GenericRecordAvroTypeInfo(TypeInformation[dict[str, Any]]):
    """Records of a schema: dicts. Flink: GenericRecordAvroTypeInfo."""

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


def _type_of(schema: Any, named: dict[str, TypeInformation[Any]]) -> TypeInformation[Any]:
    if isinstance(schema, list):
        kinds = [branch for branch in schema if branch != "null"]
        if len(kinds) != 1:
            raise UnsupportedFeatureError(
                f"the Avro union {schema} is not supported: only unions of null and one type are"
            )
        return _type_of(kinds[0], named)
    if isinstance(schema, str):
        found = named.get(schema) or _PRIMITIVES.get(schema)
        if found is None:
            raise UnsupportedFeatureError(f"the Avro type {schema!r} is not supported")
        return found
    made = _complex_type(schema, named)
    if "name" in schema:
        named[schema["name"]] = made
    return made


def _complex_type(
    schema: Mapping[str, Any], named: dict[str, TypeInformation[Any]]
) -> TypeInformation[Any]:
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return BigDecimalTypeInfo.of(schema["precision"], schema.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind == "record":
        fields = schema["fields"]
        types = [_type_of(field["type"], named) for field in fields]
        return Types.ROW_NAMED([field["name"] for field in fields], types)
    if kind == "array":
        return Types.LIST(_type_of(schema["items"], named))
    if kind == "map":
        return Types.MAP(Types.STRING(), _type_of(schema["values"], named))
    return _type_of(kind, named)
