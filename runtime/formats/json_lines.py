"""JSON lines in files, and JSON schemas for messages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import repeat
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from opchain.runtime.errors import UnsupportedFeatureError, short_repr
from opchain.runtime.formats.json_values import from_json, to_json
from opchain.runtime.formats.row_values import type_of_field, type_of_rows
from opchain.runtime.formats.text_lines import LineRecordsFormat, TextRowDeserializationSchema
from opchain.runtime.records.columns import Columns
from opchain.runtime.types.container_types import MapTypeInfo
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.serialization import Encoder, SerializationSchema
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.formats.text_lines import Decode
    from opchain.runtime.types.row import Row


class JsonRowDeserializationSchema(TextRowDeserializationSchema):
    """Reads a row from each message. Flink: JsonRowDeserializationSchema."""

    def __init__(
        self,
        row_type: RowTypeInfo,
        *,
        fails_on_missing_field: bool,
        ignores_parse_errors: bool,
        errors_are_null: bool = False,
    ) -> None:
        super().__init__(
            row_type,
            "a JSON record",
            "ignore_parse_errors()",
            ignores_parse_errors=ignores_parse_errors,
        )
        self.errors_are_null = errors_are_null
        self.fails_on_missing_field = fails_on_missing_field

    def decoder(self) -> Decode:
        """The function that decodes texts."""
        return json_decoder(
            self.row_type,
            needs_all_fields=self.fails_on_missing_field,
            errors_are_null=self.errors_are_null,
        )

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Returns a builder."""
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Builds a schema."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None
            self._fails_on_missing_field = False
            self._ignores_parse_errors = False

        def type_info(self, type_info: Any) -> JsonRowDeserializationSchema.Builder:
            """Sets the row type. Fields are matched by name."""
            self._row_type = type_of_rows(type_info, "JsonRowDeserializationSchema.type_info")
            return self

        def json_schema(self, json_schema: str) -> NoReturn:
            """Not supported.

            Raises:
                UnsupportedFeatureError: Always.
            """
            raise UnsupportedFeatureError(
                f"json_schema({short_repr(json_schema)}) is not supported; set the row type with "
                f"type_info()"
            )

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Makes a message with a missing field malformed. By default, the field is None."""
            self._fails_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Makes fields with malformed values None, and skips messages that are not JSON objects."""
            self._ignores_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Returns the schema.

            Raises:
                TypeError: The row type is not set.
                ValueError: Parse errors are ignored, but missing fields are errors.
            """
            if self._row_type is None:
                raise TypeError("JsonRowDeserializationSchema has no type; set it with type_info()")
            if self._fails_on_missing_field and self._ignores_parse_errors:
                raise ValueError(
                    "JsonRowDeserializationSchema got fail_on_missing_field() and ignore_parse_errors(), "
                    "which contradict each other; call one of them"
                )
            return JsonRowDeserializationSchema(
                self._row_type,
                fails_on_missing_field=self._fails_on_missing_field,
                ignores_parse_errors=self._ignores_parse_errors,
                errors_are_null=self._ignores_parse_errors,
            )


class JsonRowSerializationSchema(SerializationSchema["Row"]):
    """Writes each row as a message. Flink: JsonRowSerializationSchema.

    As in Flink, a time or datetime without zone ends with Z. Flink reads no other form.
    """

    def __init__(self, row_type: RowTypeInfo, *, leaves_out_nulls: bool = False) -> None:
        self.row_type = row_type
        self.leaves_out_nulls = leaves_out_nulls
        self._texts: Callable[[Sequence[Any]], list[str]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_texts": None}

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Returns a builder."""
        return JsonRowSerializationSchema.Builder()

    def serialize(self, element: Row) -> bytes:
        """Returns the message for a row."""
        if self._texts is None:
            self._texts = to_json(
                self.row_type, leaves_out_nulls=self.leaves_out_nulls, ends_times_with_z=True
            )
        (text,) = self._texts([element])
        return text.encode()

    class Builder:
        """Builds a schema."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None

        def with_type_info(self, type_info: Any) -> JsonRowSerializationSchema.Builder:
            """Sets the row type."""
            where = "JsonRowSerializationSchema.with_type_info"
            self._row_type = type_of_rows(type_info, where)
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Returns the schema.

            Raises:
                TypeError: The row type is not set.
            """
            if self._row_type is None:
                raise TypeError(
                    "JsonRowSerializationSchema has no type; set it with with_type_info()"
                )
            return JsonRowSerializationSchema(self._row_type)


class JsonReaderFormat(LineRecordsFormat[Any]):
    """Reads a JSON value from each line.

    Not in PyFlink, which only reads JSON messages; the name follows CsvReaderFormat.

    Large files are split, and read by several subtasks. msgspec is used if it is installed.
    """

    def __init__(
        self,
        record_type: TypeInformation[Any] | None = None,
        *,
        needs_all_fields: bool = False,
        errors_are_null: bool = False,
    ) -> None:
        self.record_type = record_type
        self.needs_all_fields = needs_all_fields
        self.errors_are_null = errors_are_null

    @staticmethod
    def for_type(type_info: Any = None) -> JsonReaderFormat:
        """Reads records of a type.

        Args:
            type_info: A type of `Types` or `DataTypes`. With a row type, each line is an object, whose fields become a
                Row; missing fields are None. Without a type, records are JSON values: dict, list, str, int, float, bool
                or None.
        """
        where = "JsonReaderFormat.for_type"
        return JsonReaderFormat(None if type_info is None else type_of_field(type_info, where))

    def fail_on_missing_field(self) -> JsonReaderFormat:
        """Makes an object with a missing field malformed. By default, the field is None."""
        return JsonReaderFormat(self.record_type, needs_all_fields=True)

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The declared type."""
        return self.record_type

    @property
    def row_names(self) -> Sequence[str]:
        """The names of the declared row type; none for other types."""
        kind = self.record_type
        return kind.get_field_names() if isinstance(kind, RowTypeInfo) else ()

    def decoder(self) -> Decode:
        """The function that decodes lines."""
        decode = json_decoder(
            self.record_type,
            needs_all_fields=self.needs_all_fields,
            errors_are_null=self.errors_are_null,
        )
        return _refusing_null(decode) if self.row_names else decode


def _refusing_null(decode: Decode) -> Decode:
    """Makes a line that is `null` malformed, as in Flink's tables: it has no row."""

    def rows_of(lines: Sequence[str]) -> Sequence[Any]:
        rows = decode(lines)
        if rows and not isinstance(rows, Columns):
            raise ValueError("null is not a JSON object")
        return rows

    return rows_of


def json_decoder(
    kind: TypeInformation[Any] | None,
    *,
    needs_all_fields: bool = False,
    errors_are_null: bool = False,
) -> Decode:
    """The function that decodes lines of JSON to values of a type. Empty lines are skipped."""
    parse = _parser(keeps_decimals=kind is not None and _has_decimals(kind))
    convert = (
        None
        if kind is None
        else from_json(kind, needs_all_fields=needs_all_fields, errors_are_null=errors_are_null)
    )

    def decode(lines: Sequence[str]) -> Sequence[Any]:
        if "" in lines:
            lines = [line for line in lines if line]
        values = parse(lines)
        return values if convert is None else convert(values)

    return decode


def _parser(*, keeps_decimals: bool) -> Callable[[Sequence[str]], list[Any]]:
    if not keeps_decimals:
        try:
            import msgspec  # noqa: PLC0415 - an executor may have it
        except ModuleNotFoundError:
            pass
        else:
            return _msgspec_parser(msgspec)
    parse_float: Any = Decimal if keeps_decimals else None
    decoder = json.JSONDecoder(parse_float=parse_float)
    return _standard_parser(decoder)


def _msgspec_parser(msgspec: Any) -> Callable[[Sequence[str]], list[Any]]:
    """Parses with msgspec. Lines that msgspec refuses are parsed by the standard library.

    The values are equal, and the standard library accepts a little more.
    """
    decode, standard = msgspec.json.Decoder().decode, _standard_parser(json.JSONDecoder())

    def parse(lines: Sequence[str]) -> list[Any]:
        try:
            return list(map(decode, lines))
        except (msgspec.DecodeError, ValueError, RecursionError):
            return standard(lines)

    return parse


def _standard_parser(decoder: json.JSONDecoder) -> Callable[[Sequence[str]], list[Any]]:
    scan: Any = decoder.scan_once  # type: ignore[attr-defined]  # typeshed leaves it out

    def parse(lines: Sequence[str]) -> list[Any]:
        # One call into C for each line. It raises StopIteration if a line does not begin with a value, which ends the
        # list early. Then, or if text follows a value, each line is checked.
        found = list(map(scan, lines, repeat(0)))
        if len(found) == len(lines) and all(map(_is_whole, found, lines)):
            return [value for value, _ in found]
        return list(map(decoder.decode, lines))

    return parse


def _is_whole(found: tuple[Any, int], line: str) -> bool:
    return found[1] == len(line)


def _has_decimals(kind: Any) -> bool:
    if isinstance(kind, RowTypeInfo):
        return any(map(_has_decimals, kind.field_types))
    if isinstance(kind, MapTypeInfo):
        return _has_decimals(kind.value_type_info)
    if isinstance(kind, BasicTypeInfo):
        return kind.basic_type is BasicType.BIG_DEC
    return _has_decimals(kind.element_type) if hasattr(kind, "element_type") else False


@dataclass(frozen=True)
class JsonLinesEncoder(Encoder[Any]):
    """Writes each record as a line of JSON: `FileSink.for_row_format(path, JsonLinesEncoder())`.

    Args:
        type_info: A type of `Types` or `DataTypes`. With a row type, records may be rows, tuples or dicts. Without a
            type, records must be JSON values.
        leaves_out_nulls: Whether fields of rows that are None are left out. Otherwise they are written as null.
    """

    type_info: Any = None
    leaves_out_nulls: bool = False
    _texts: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.type_info is not None:
            found = type_of_field(self.type_info, "JsonLinesEncoder")
            object.__setattr__(self, "type_info", found)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_texts": None}

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Writes one line."""
        self.encode_batch([element], stream)

    def encode_batch(self, elements: Sequence[Any], stream: BinaryIO) -> None:
        """Writes a line for each record, with a single call."""
        if self._texts is None:
            texts = to_json(self.type_info, leaves_out_nulls=self.leaves_out_nulls)
            object.__setattr__(self, "_texts", texts)
        stream.write("".join(f"{text}\n" for text in self._texts(elements)).encode())
