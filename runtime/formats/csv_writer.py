"""CSV files, written."""

from __future__ import annotations

import csv
import io
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.formats.csv_schema import CsvSchema
from opchain.runtime.formats.csv_values import dialect_of, field_writer
from opchain.runtime.types.serialization import BulkWriter, RowDataBulkWriterFactory

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            stream.write(self._text.lines([schema.names]))

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
        self._buffer = io.StringIO(newline="")
        self._line_ends = {"\r", "\n"}.difference(schema.line_separator)
        self._has_comments = schema.allow_comments
        dialect = dialect_of(schema) | {"lineterminator": schema.line_separator}
        self._writer = csv.writer(self._buffer, **dialect)
        self._quoting_writer: Any = None
        if schema.quote_char is not None:
            self._quoting_writer = csv.writer(self._buffer, **dialect | {"quoting": csv.QUOTE_ALL})

    def of_rows(self, rows: Sequence[Any]) -> bytes:
        """The lines of rows."""
        return self.lines(self._fields_of(rows))

    def lines(self, fields: Sequence[Sequence[str]]) -> bytes:
        """The lines of fields.

        Raises:
            ValueError: A field cannot be written: it needs quotes, and the schema has none.
        """
        writer = self._writer
        if self._line_ends:
            # Older versions of Python quote a line end only if it is the one that is written.
            text = "".join(chain.from_iterable(fields))
            if any(end in text for end in self._line_ends):
                writer = self._quoting("it has a line end")
        if self._has_comments and any(row[0].startswith("#") for row in fields):
            writer = self._quoting("it begins as a comment")
        try:
            writer.writerows(fields)
        except csv.Error as error:
            raise ValueError(f"a row cannot be written as CSV ({error})") from error
        text = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return text.encode()

    def _quoting(self, because: str) -> Any:
        if self._quoting_writer is None:
            raise ValueError(
                f"a row cannot be written as CSV ({because}, and the schema has no quotes)"
            )
        return self._quoting_writer
