"""The formats of tables: how rows are read from and written to files and messages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.connectors.row_types import row_type, to_wire, wire_type
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.table.connectors.options import Options
    from opchain.compiler.table.expressions import Column
    from opchain.runtime.functions.sql import RowProjection


def format_of(options: Options, use: str, columns: Sequence[Column], *names: str) -> Any:
    """The format that an option names, for one use: the name of a method of the format.

    Args:
        options: The options of the table.
        use: `reader` or `writer` of files, `deserializer` or `serializer`.
        columns: The columns that are read or written.
        names: The names of the option, such as `format` and `value.format`. The options of the format have the same prefix.

    Raises:
        GraphError: There is no such format for this use.
    """
    name, of = next(
        ((name, of) for name in names if (of := options.take(name)) is not None), (names[0], None)
    )
    of = of or options.need(name)
    found = FORMATS.get(of)
    if found is None or not hasattr(found, use):
        known = ", ".join(name for name, each in FORMATS.items() if hasattr(each, use))
        raise GraphError(
            f"table '{options.path}': the connector '{options.connector}' has no format '{of}'; use {known}"
        )
    return found(columns, options, f"{name.removesuffix('format')}{of}.")


class _Format:
    """A format of some columns.

    Attributes:
        gives_rows: Whether a file is read as rows; otherwise, as dictionaries.
        is_iso: Whether times have the form of ISO 8601, not that of SQL.
        rows: The type of rows in this form.
        skips_malformed: Whether malformed records are skipped.
    """

    gives_rows = True
    is_iso = False
    _type_of_rows = staticmethod(wire_type)

    def __init__(self, columns: Sequence[Column], options: Options, prefix: str) -> None:
        self.columns = columns
        self.options = options
        self.prefix = prefix
        self.rows = self._type_of_rows(columns)
        self.skips_malformed = options.flag(f"{prefix}ignore-parse-errors")
        self._read_options()

    def _read_options(self) -> None:
        """Reads the options of the format, for reading and for writing."""

    def to_wire(self, places: Sequence[int] | None = None) -> RowProjection | None:
        """The function that turns a row into this form; None if both are equal. `places` has the positions of the columns."""
        return to_wire(self.columns, places, is_iso=self.is_iso)


class JsonFormat(_Format):
    """JSON: an object for each row."""

    def _read_options(self) -> None:
        options, prefix = self.options, self.prefix
        name = f"{prefix}timestamp-format.standard"
        self.is_iso = options.one_of(name, {"SQL": False, "ISO-8601": True}, "SQL")
        self.needs_all_fields = options.flag(f"{prefix}fail-on-missing-field")
        self.leaves_out_nulls = options.flag(f"{prefix}encode.ignore-null-fields")
        # Decimals are always plain numbers, and keys of maps are never NULL.
        options.drop(f"{prefix}encode.decimal-as-plain-number", f"{prefix}map-null-key.")

    def reader(self) -> Any:
        """The format that reads files."""
        from opchain.runtime.formats.json_lines import JsonReaderFormat  # noqa: PLC0415 - loaded when used

        return JsonReaderFormat(
            self.rows,
            needs_all_fields=self.needs_all_fields,
            errors_are_null=self.skips_malformed,
        )

    def writer(self) -> Any:
        """The encoder that writes files."""
        from opchain.runtime.formats.json_lines import JsonLinesEncoder  # noqa: PLC0415 - likewise

        return JsonLinesEncoder(self.rows, leaves_out_nulls=self.leaves_out_nulls)

    def deserializer(self) -> Any:
        """A schema that reads messages."""
        from opchain.runtime.formats.json_lines import JsonRowDeserializationSchema  # noqa: PLC0415 - likewise

        return JsonRowDeserializationSchema(
            self.rows,
            fails_on_missing_field=self.needs_all_fields,
            ignores_parse_errors=False,
            errors_are_null=self.skips_malformed,
        )

    def serializer(self) -> Any:
        """A schema that writes messages."""
        from opchain.runtime.formats.json_lines import JsonRowSerializationSchema  # noqa: PLC0415 - likewise

        return JsonRowSerializationSchema(self.rows, leaves_out_nulls=self.leaves_out_nulls)


class CsvFormat(_Format):
    """CSV: a line for each row."""

    def _read_options(self) -> None:
        from opchain.runtime.formats.csv_schema import CsvColumn, CsvSchema  # noqa: PLC0415 - likewise

        options, prefix, rows = self.options, self.prefix, self.rows
        has_quotes = not options.flag(f"{prefix}disable-quote-character")
        quote = _character(options.take(f"{prefix}quote-character", default='"'))
        elements = options.take(f"{prefix}array-element-delimiter", default=";") or ";"
        self.schema = CsvSchema(
            tuple(
                CsvColumn(name, of, elements)
                for name, of in zip(rows.get_field_names(), rows.field_types, strict=True)
            ),
            column_separator=_character(options.take(f"{prefix}field-delimiter")) or ",",
            quote_char=quote if has_quotes else None,
            escape_char=_character(options.take(f"{prefix}escape-character")),
            null_value=options.take(f"{prefix}null-literal"),
            allow_comments=options.flag(f"{prefix}allow-comments"),
            errors_are_null=self.skips_malformed,
        )

    def reader(self) -> Any:
        """The format that reads files."""
        from opchain.runtime.formats.csv_reader import CsvReaderFormat  # noqa: PLC0415 - likewise

        return CsvReaderFormat.for_schema(self.schema)

    def writer(self) -> Any:
        """The writers of files."""
        from opchain.runtime.formats.csv_writer import CsvBulkWriters  # noqa: PLC0415 - likewise

        return CsvBulkWriters.for_schema(self.schema)

    def deserializer(self) -> Any:
        """A schema that reads messages."""
        from opchain.runtime.formats.csv_writer import CsvRowDeserializationSchema  # noqa: PLC0415 - likewise

        return CsvRowDeserializationSchema(self.schema, ignores_parse_errors=False)

    def serializer(self) -> Any:
        """A schema that writes messages."""
        from opchain.runtime.formats.csv_writer import CsvRowSerializationSchema  # noqa: PLC0415 - likewise

        return CsvRowSerializationSchema(replace(self.schema, line_separator=""))


class AvroFormat(_Format):
    """Avro, with the schema that Flink derives from a table."""

    gives_rows = False
    _type_of_rows = staticmethod(row_type)

    def _read_options(self) -> None:
        self.schema = _avro_schema(self.columns)

    def to_wire(self, places: Sequence[int] | None = None) -> None:
        """Nothing: Avro has no columns of times here."""

    def reader(self) -> Any:
        """The format that reads files."""
        from opchain.runtime.formats.avro_files import AvroReaders  # noqa: PLC0415 - likewise

        return AvroReaders.for_generic_record(self.schema)

    def writer(self) -> Any:
        """The writers of files."""
        from opchain.runtime.formats.avro_files import AvroBulkWriters  # noqa: PLC0415 - likewise

        return AvroBulkWriters.for_generic_record(self.schema)

    def deserializer(self) -> Any:
        """A schema that reads messages."""
        from opchain.runtime.formats.avro_files import AvroRowDeserializationSchema  # noqa: PLC0415 - likewise

        return AvroRowDeserializationSchema(avro_schema_string=self.schema.text)

    def serializer(self) -> Any:
        """A schema that writes messages."""
        from opchain.runtime.formats.avro_files import AvroRowSerializationSchema  # noqa: PLC0415 - likewise

        return AvroRowSerializationSchema(avro_schema_string=self.schema.text)


class ParquetFormat(_Format):
    """Parquet, only in files."""

    _type_of_rows = staticmethod(row_type)

    def _read_options(self) -> None:
        self.options.drop(self.prefix)

    def to_wire(self, places: Sequence[int] | None = None) -> None:
        """Nothing: Parquet has types for times."""

    def reader(self) -> Any:
        """The format that reads files."""
        from opchain.runtime.formats.parquet import ParquetColumnarRowInputFormat  # noqa: PLC0415 - likewise

        return ParquetColumnarRowInputFormat(self.rows)

    def writer(self) -> Any:
        """The writers of files."""
        from opchain.runtime.formats.parquet import ParquetBulkWriters  # noqa: PLC0415 - likewise

        return ParquetBulkWriters.for_row_type(self.rows)


class RawFormat(_Format):
    """The bytes of the only column, in messages."""

    _type_of_rows = staticmethod(row_type)

    def _read_options(self) -> None:
        from opchain.runtime.formats.raw import NUMBERS  # noqa: PLC0415 - likewise

        options, prefix = self.options, self.prefix
        of = self.columns[0].data_type
        known = ("CHAR", "VARCHAR", "STRING", "BYTES", *NUMBERS)
        if len(self.columns) != 1 or of.name not in known:
            shown = ", ".join(f"{each.name} {each.data_type}" for each in self.columns)
            raise GraphError(
                f"table '{options.path}': the format 'raw' is for one column of type {', '.join(known)}, and the columns "
                f"are {shown}; use another format"
            )
        charset = options.take(f"{prefix}charset", default="UTF-8") or ""
        orders = {"big-endian": ">", "little-endian": "<"}
        order = options.one_of(f"{prefix}endianness", orders, "big-endian")
        self._layout = (of.name, charset, order)

    def deserializer(self) -> Any:
        """A schema that reads messages."""
        from opchain.runtime.formats.raw import RawRowDeserializationSchema  # noqa: PLC0415 - likewise

        return RawRowDeserializationSchema(self.columns[0].name, *self._layout)

    def serializer(self) -> Any:
        """A schema that writes messages."""
        from opchain.runtime.formats.raw import RawRowSerializationSchema  # noqa: PLC0415 - likewise

        return RawRowSerializationSchema(*self._layout)


FORMATS: dict[str, type[_Format]] = {
    "json": JsonFormat,
    "csv": CsvFormat,
    "avro": AvroFormat,
    "parquet": ParquetFormat,
    "raw": RawFormat,
}


def _character(text: str | None) -> str | None:
    r"""An option that is one character. It may be written as in Java: '\t', '\u0001'.

    Raises:
        ValueError: It is longer.
    """
    if text is None or len(text) == 1:
        return text
    found = re.sub(r"\\u([0-9a-fA-F]{4})", lambda each: chr(int(each[1], 16)), text)
    found = _ESCAPES.get(found, found)
    if len(found) != 1:
        raise ValueError(f"{text!r} is not one character")
    return found


_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}


_AVRO_TYPES = {
    **dict.fromkeys(("CHAR", "VARCHAR", "STRING"), "string"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "int"),
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "BYTES": "bytes",
}


def _avro_schema(columns: Sequence[Column]) -> Any:
    """The Avro schema of a table, as Flink derives it.

    Raises:
        GraphError: A column has a type that is not supported in Avro.
    """
    from opchain.runtime.formats.avro_files import AvroSchema  # noqa: PLC0415 - likewise

    fields = []
    for name, data_type in columns:
        of = _AVRO_TYPES.get(data_type.name)
        if of is None:
            raise GraphError(
                f"column '{name}': the format 'avro' has no {data_type} here; CAST it to STRING or BIGINT"
            )
        fields.append({"name": name, "type": ["null", of] if data_type.is_nullable else of})
    namespace = "org.apache.flink.avro.generated"
    return AvroSchema(
        json.dumps({"type": "record", "name": "record", "namespace": namespace, "fields": fields})
    )
