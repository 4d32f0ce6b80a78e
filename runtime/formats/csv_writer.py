"""CSV writers for files, and CSV schemas for messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.errors import require_instance
from opchain.runtime.formats.csv_reader import check_columns, csv_decoder, field_writer, quoting
from opchain.runtime.formats.csv_schema import CsvColumn, CsvSchema
from opchain.runtime.formats.row_values import type_of_rows
from opchain.runtime.formats.text_lines import TextRowDeserializationSchema
from opchain.runtime.types.serialization import (
    BulkWriter,
    RowDataBulkWriterFactory,
    SerializationSchema,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Self

    from opchain.runtime.formats.text_lines import Decode
    from opchain.runtime.types.row import Row


class CsvBulkWriters:
    """Creates factories for FileSink. Flink: CsvBulkWriters of PyFlink."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvBulkWriterFactory:
        """Writes rows, tuples, and dicts or objects that have the names of the columns, in UTF-8.

        Raises:
            TypeError: The argument is not a CsvSchema.
        """
        require_instance(schema, CsvSchema, "CsvBulkWriters.for_schema", "a CsvSchema")
        check_columns(schema)
        return CsvBulkWriterFactory(schema)


class CsvBulkWriterFactory(RowDataBulkWriterFactory):
    """Creates writers of CSV files."""

    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.row_type)
        self.schema = schema

    def create(self, stream: BinaryIO) -> CsvBulkWriter:
        """Creates a writer to the open file, and writes the header if the schema has one."""
        return CsvBulkWriter(self.schema, stream)


class CsvBulkWriter(BulkWriter["Row"]):
    """Writes rows without buffering them."""

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
        """Does nothing: rows are not buffered."""

    def finish(self) -> None:
        """Does nothing: the file is complete after each row."""


class CsvText:
    """Encodes rows as lines of bytes."""

    def __init__(self, schema: CsvSchema) -> None:
        self._fields_of = field_writer(schema)
        self._separator = schema.column_separator
        self._line_end = schema.line_separator

    def of_rows(self, rows: Sequence[Any]) -> bytes:
        """Encodes rows as lines.

        Raises:
            ValueError: A field needs quotes, but the schema has none.
        """
        return self.lines(self._fields_of(rows))

    def lines(self, fields: Iterable[Sequence[str]]) -> bytes:
        """Encodes lines of fields that are already quoted."""
        separator, line_end = self._separator, self._line_end
        return "".join([f"{separator.join(row)}{line_end}" for row in fields]).encode()


class _RowSchemaBuilder:
    """The settings of messages that both directions have."""

    def __init__(self, type_info: Any) -> None:
        row_type = type_of_rows(type_info, type(self).__qualname__)
        fields = zip(row_type.get_field_names(), row_type.get_field_types(), strict=True)
        self._schema = CsvSchema(tuple(CsvColumn(name, kind) for name, kind in fields))

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        """Sets the separator of array elements; a semicolon by default."""
        columns = (replace(column, separator=delimiter) for column in self._schema.columns)
        return self._set(columns=tuple(columns))

    def set_quote_character(self, c: str) -> Self:
        """Sets the quote for fields with special characters."""
        return self._set(quote_char=c)

    def set_escape_character(self, c: str) -> Self:
        """Sets the escape character. It makes the next character a normal one."""
        return self._set(escape_char=c)

    def _set(self, **changes: Any) -> Self:
        self._schema = replace(self._schema, **changes)
        return self


class CsvRowDeserializationSchema(TextRowDeserializationSchema):
    """Reads a row from each message. Flink: CsvRowDeserializationSchema."""

    def __init__(self, schema: CsvSchema, *, ignores_parse_errors: bool) -> None:
        check_columns(schema)
        super().__init__(
            schema.row_type,
            "a CSV record",
            "set_ignore_parse_errors(True)",
            ignores_parse_errors=ignores_parse_errors,
        )
        self.schema = schema

    def decoder(self) -> Decode:
        """The function that decodes texts."""
        return csv_decoder(self.schema)

    class Builder(_RowSchemaBuilder):
        """Builds a schema for rows of a type."""

        def set_field_delimiter(self, delimiter: str) -> Self:
            """Sets the separator of fields; a comma by default."""
            return self._set(column_separator=delimiter)

        def set_allow_comments(self, allow_comments: bool) -> Self:
            """Sets whether a message that begins with # is a comment, and so not a row."""
            return self._set(allow_comments=allow_comments)

        def set_null_literal(self, null_literal: str) -> Self:
            """Sets the text that means None."""
            return self._set(null_value=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> Self:
            """Sets whether missing and malformed fields are None, and messages that are not CSV are skipped."""
            return self._set(errors_are_null=ignore_parse_errors)

        def build(self) -> CsvRowDeserializationSchema:
            """Returns the schema."""
            ignores_errors = self._schema.errors_are_null
            return CsvRowDeserializationSchema(self._schema, ignores_parse_errors=ignores_errors)


class CsvRowSerializationSchema(SerializationSchema["Row"]):
    """Writes each row as a message. Flink: CsvRowSerializationSchema."""

    def __init__(self, schema: CsvSchema) -> None:
        check_columns(schema)
        self.schema = schema
        self._text: CsvText | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_text": None}

    def serialize(self, element: Row) -> bytes:
        """Returns the message for a row. It ends with the line delimiter."""
        if self._text is None:
            self._text = CsvText(self.schema)
        return self._text.of_rows([element])

    class Builder(_RowSchemaBuilder):
        """Builds a schema for rows of a type."""

        def set_field_delimiter(self, c: str) -> Self:
            """Sets the separator of fields; a comma by default."""
            return self._set(column_separator=c)

        def set_line_delimiter(self, delimiter: str) -> Self:
            """Sets the end of each message; a line feed by default."""
            return self._set(line_separator=delimiter)

        def disable_quote_character(self) -> Self:
            """Removes the quote: fields are never quoted."""
            return self._set(quote_char=None)

        def set_null_literal(self, s: str) -> Self:
            """Sets the text that means None."""
            return self._set(null_value=s)

        def build(self) -> CsvRowSerializationSchema:
            """Returns the schema."""
            return CsvRowSerializationSchema(self._schema)
