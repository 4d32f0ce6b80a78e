"""CSV files, written; and CSV in messages: rows to bytes and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.errors import short_repr
from opchain.runtime.formats.csv_reader import csv_decoder, field_writer, quoting
from opchain.runtime.formats.csv_schema import CsvColumn, CsvSchema
from opchain.runtime.formats.row_values import type_of_rows
from opchain.runtime.formats.text_lines import MALFORMED, reason_of
from opchain.runtime.types.serialization import (
    BulkWriter,
    DeserializationSchema,
    RowDataBulkWriterFactory,
    SerializationSchema,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.runtime.formats.text_lines import Decode
    from opchain.runtime.types.record_types import RowTypeInfo
    from opchain.runtime.types.row import Row


class CsvBulkWriters:
    """Makes factories for FileSink. Flink: CsvBulkWriters of PyFlink."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvBulkWriterFactory:
        """Writes rows, tuples, dicts or objects with the columns' names, in UTF-8.

        Raises:
            TypeError: It is not a schema.
        """
        if not isinstance(schema, CsvSchema):
            raise TypeError(f"CsvBulkWriters.for_schema got {schema!r}; it takes a CsvSchema")
        return CsvBulkWriterFactory(schema)


class CsvBulkWriterFactory(RowDataBulkWriterFactory):
    """Makes writers of CSV files."""

    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.row_type)
        self.schema = schema

    def create(self, stream: BinaryIO) -> CsvBulkWriter:
        """A writer into the open file, which begins with the header where the schema has one."""
        return CsvBulkWriter(self.schema, stream)


class CsvBulkWriter(BulkWriter["Row"]):
    """Writes rows as they come: a batch at a time where they come in batches."""

    def __init__(self, schema: CsvSchema, stream: BinaryIO) -> None:
        self._stream = stream
        self._text = CsvText(schema)
        if schema.use_header:
            stream.write(self._text.lines([list(map(quoting(schema), schema.names))]))

    def add_element(self, element: Row) -> None:
        """Writes one row."""
        self.add_batch([element])

    def add_batch(self, elements: Sequence[Row]) -> None:
        """Writes rows."""
        self._stream.write(self._text.of_rows(elements))

    def flush(self) -> None:
        """Does nothing: no row stays here."""

    def finish(self) -> None:
        """Does nothing: the file is complete behind every row."""


class CsvText:
    """Rows as lines of bytes."""

    def __init__(self, schema: CsvSchema) -> None:
        self._fields_of = field_writer(schema)
        self._separator = schema.column_separator
        self._line_end = schema.line_separator

    def of_rows(self, rows: Sequence[Any]) -> bytes:
        """The lines of rows.

        Raises:
            ValueError: A field cannot be written: it needs quotes, and the schema has none.
        """
        return self.lines(self._fields_of(rows))

    def lines(self, fields: Iterable[Sequence[str]]) -> bytes:
        """The lines of fields, which are quoted already."""
        separator, line_end = self._separator, self._line_end
        return "".join([f"{separator.join(row)}{line_end}" for row in fields]).encode()


class CsvRowDeserializationSchema(DeserializationSchema["Row"]):
    """A row from each message. Flink: CsvRowDeserializationSchema."""

    def __init__(self, schema: CsvSchema, *, ignores_parse_errors: bool) -> None:
        self.schema = schema
        self.ignores_parse_errors = ignores_parse_errors
        self._decode: Decode | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_decode": None}

    def deserialize(self, message: bytes) -> Row:
        """The row; None for a message that is none, where parse errors are ignored.

        Raises:
            ValueError: The message is not a row of the type.
        """
        if self._decode is None:
            self._decode = csv_decoder(self.schema)
        try:
            (row,) = self._decode([message.decode().rstrip("\r\n")])
        except MALFORMED as error:
            if self.ignores_parse_errors:
                return None  # type: ignore[return-value]  # as the contract has it
            raise ValueError(
                f"the message {short_repr(message)} is not a CSV record of "
                f"{self.schema.row_type!r} "
                f"({reason_of(error)}); correct it, or set_ignore_parse_errors(True)"
            ) from error
        found: Row = row
        return found

    def get_produced_type(self) -> RowTypeInfo:
        """The declared type."""
        return self.schema.row_type

    class Builder:
        """A schema in the making, for rows of a type."""

        def __init__(self, type_info: Any) -> None:
            where = "CsvRowDeserializationSchema.Builder"
            self._schema = _schema_of(type_info, where)
            self._ignores_parse_errors = False

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Sets what stands between fields; a comma if not called."""
            self._schema = replace(self._schema, column_separator=delimiter)
            return self

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Whether messages that begin with # are malformed, or none."""
            self._schema = replace(self._schema, allow_comments=allow_comments)
            return self

        def set_array_element_delimiter(
            self, delimiter: str
        ) -> CsvRowDeserializationSchema.Builder:
            """Sets what stands between elements of lists; a semicolon if not called."""
            self._schema = _with_array_separator(self._schema, delimiter)
            return self

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Sets what stands around fields with special characters."""
            self._schema = replace(self._schema, quote_char=c)
            return self

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Sets what takes the next character its meaning."""
            self._schema = replace(self._schema, escape_char=c)
            return self

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Sets the text that stands for None."""
            self._schema = replace(self._schema, null_value=null_literal)
            return self

        def set_ignore_parse_errors(
            self, ignore_parse_errors: bool
        ) -> CsvRowDeserializationSchema.Builder:
            """Whether messages that are not rows are skipped."""
            self._ignores_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """The schema."""
            return CsvRowDeserializationSchema(
                self._schema, ignores_parse_errors=self._ignores_parse_errors
            )


class CsvRowSerializationSchema(SerializationSchema["Row"]):
    """A message from each row. Flink: CsvRowSerializationSchema."""

    def __init__(self, schema: CsvSchema) -> None:
        self.schema = schema
        self._text: CsvText | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_text": None}

    def serialize(self, element: Row) -> bytes:
        """The message, which ends as the line delimiter says."""
        if self._text is None:
            self._text = CsvText(self.schema)
        return self._text.of_rows([element])

    class Builder:
        """A schema in the making, for rows of a type."""

        def __init__(self, type_info: Any) -> None:
            self._schema = _schema_of(type_info, "CsvRowSerializationSchema.Builder")

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Sets what stands between fields; a comma if not called."""
            self._schema = replace(self._schema, column_separator=c)
            return self

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Sets what each message ends with; a line feed if not called."""
            self._schema = replace(self._schema, line_separator=delimiter)
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Sets what stands between elements of lists; a semicolon if not called."""
            self._schema = _with_array_separator(self._schema, delimiter)
            return self

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Fields are never quoted."""
            self._schema = replace(self._schema, quote_char=None)
            return self

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Sets what stands around fields with special characters."""
            self._schema = replace(self._schema, quote_char=c)
            return self

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Sets what takes the next character its meaning."""
            self._schema = replace(self._schema, escape_char=c)
            return self

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Sets the text that stands for None."""
            self._schema = replace(self._schema, null_value=s)
            return self

        def build(self) -> CsvRowSerializationSchema:
            """The schema."""
            return CsvRowSerializationSchema(self._schema)


def _schema_of(type_info: Any, where: str) -> CsvSchema:
    row_type = type_of_rows(type_info, where)
    fields = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
    return CsvSchema(tuple(CsvColumn(name, kind) for name, kind in fields))


def _with_array_separator(schema: CsvSchema, separator: str) -> CsvSchema:
    return replace(
        schema, columns=tuple(replace(column, separator=separator) for column in schema.columns)
    )
