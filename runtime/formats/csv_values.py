"""Rows of values from the text fields of CSV, and back; a column at a time."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.formats.json_values import LISTS
from opchain.runtime.formats.row_values import columns_of_rows, rows_of_columns
from opchain.runtime.formats.text_values import is_bytes, text_reader, text_writer
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opchain.runtime.formats.csv_schema import CsvColumn, CsvSchema
    from opchain.runtime.types.row import Row
    from opchain.runtime.types.type_information import TypeInformation


def dialect_of(schema: CsvSchema) -> dict[str, Any]:
    """What the standard library's csv needs to know of a schema; also lifts its limit of a field's size."""
    csv.field_size_limit(sys.maxsize)
    return {
        "delimiter": schema.column_separator,
        "quotechar": schema.quote_char,
        "quoting": csv.QUOTE_NONE if schema.quote_char is None else csv.QUOTE_MINIMAL,
        "escapechar": schema.escape_char,
        # With an escape character, quotes inside are escaped, else doubled: as Jackson writes both.
        "doublequote": schema.escape_char is None,
        "strict": True,
    }


def row_reader(schema: CsvSchema) -> Callable[[Sequence[Sequence[str]]], list[Row]]:
    """What makes rows of lists of fields; raises a ValueError where a field is none of its type."""
    names = schema.names
    readers = [_column_reader(column, schema.null_value) for column in schema.columns]

    def rows_of(fields: Sequence[Sequence[str]]) -> list[Row]:
        widths = set(map(len, fields))
        if widths != {len(names)}:
            wrong = next(width for width in widths if width != len(names))
            raise ValueError(f"it has {wrong} fields, expected {len(names)}")
        columns = []
        for name, read, texts in zip(names, readers, zip(*fields, strict=True), strict=True):
            try:
                columns.append(read(texts))
            except ValueError as error:  # noqa: PERF203 - a few columns for a batch of rows
                raise ValueError(f"column '{name}': {error}") from error
        return rows_of_columns(names, columns)

    return rows_of


def field_writer(schema: CsvSchema) -> Callable[[Iterable[Any]], list[tuple[str, ...]]]:
    """What makes tuples of fields of rows."""
    row_type = schema.row_type
    null = "" if schema.null_value is None else schema.null_value
    writers = [_text_of(column, null) for column in schema.columns]

    def fields_of(rows: Iterable[Any]) -> list[tuple[str, ...]]:
        texts = [
            [null if value is None else write(value) for value in values]
            for write, values in zip(writers, columns_of_rows(row_type, rows), strict=True)
        ]
        return list(zip(*texts, strict=True))

    return fields_of


def _column_reader(
    column: CsvColumn, null_value: str | None
) -> Callable[[Sequence[str]], Sequence[Any]]:
    is_text = _is_text(column.type_info)
    read, nulls = _reader(column, null_value), _nulls(column.type_info, null_value)

    def values_of(texts: Sequence[str]) -> Sequence[Any]:
        if any(null in texts for null in nulls):
            return [None if text in nulls else read(text) for text in texts]
        return texts if is_text else list(map(read, texts))

    return values_of


def _nulls(kind: TypeInformation[Any], null_value: str | None) -> set[str]:
    """The texts that are None, as a field or as an element of one."""
    nulls = {null_value} if null_value is not None else set()
    # Empty text is not a value of most types, but it may be one of bytes.
    if not _is_text(kind) and (null_value is None or not is_bytes(kind)):
        nulls.add("")
    return nulls


def _is_text(kind: TypeInformation[Any]) -> bool:
    return isinstance(kind, BasicTypeInfo) and kind.basic_type is BasicType.STRING


def _reader(column: CsvColumn, null_value: str | None) -> Callable[[str], Any]:
    kind = column.type_info
    if isinstance(kind, LISTS) and not is_bytes(kind):
        element = _scalar(text_reader(kind.element_type), column)
        if not column.separator:
            return lambda text: [element(text)]
        nulls = _nulls(kind.element_type, null_value)
        return lambda text: [
            None if each in nulls else element(each) for each in text.split(column.separator)
        ]
    return _scalar(text_reader(kind), column)


def _text_of(column: CsvColumn, null: str) -> Callable[[Any], str]:
    kind, separator = column.type_info, column.separator
    if isinstance(kind, LISTS) and not is_bytes(kind):
        element = _scalar(text_writer(kind.element_type), column)
        return lambda values: separator.join(
            null if value is None else element(value) for value in values
        )
    return _scalar(text_writer(kind), column)


def _scalar(convert: Callable[[Any], Any] | None, column: CsvColumn) -> Callable[[Any], Any]:
    if convert is None:
        raise UnsupportedFeatureError(
            f"CSV does not support the column '{column.name}' of type {column.type_info!r}; "
            f"choose another "
            "type"
        )
    return convert
