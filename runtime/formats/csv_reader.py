"""Reads CSV files as rows of a schema. If a file can be split, a subtask may start reading at any line.

Numbers have Java's notation. A decimal with a declared scale is rounded to it, as in Flink.
"""

from __future__ import annotations

import copy
import csv
import io
import re
import sys
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnsupportedFeatureError, require_instance
from opchain.runtime.files.line_blocks import LineBlock, is_compressed, line_blocks
from opchain.runtime.files.malformed import MalformedRecord, MalformedRecords, checked_policy
from opchain.runtime.formats.csv_schema import CsvColumn, CsvSchema
from opchain.runtime.formats.json_values import LISTS
from opchain.runtime.formats.row_values import columns_of_rows
from opchain.runtime.formats.text_lines import (
    MALFORMED,
    LineRecordsFormat,
    reason_of,
    with_line_feeds,
)
from opchain.runtime.formats.text_values import INTEGER_BITS, is_bytes, text_reader, text_writer
from opchain.runtime.records.columns import Columns
from opchain.runtime.types.printed_form import double_text, float_text
from opchain.runtime.types.record_types import RowTypeInfo
from opchain.runtime.types.row import Row
from opchain.runtime.types.time_types import EXACTLY, BigDecimalTypeInfo
from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.files.file_range import FileRange
    from opchain.runtime.formats.text_lines import Decode

_LONGEST_UNQUOTED = 24
_CONTROLS = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}
_JAVA_TEXT: dict[BasicType | None, Callable[[Any], str]] = {
    BasicType.FLOAT: float_text,
    BasicType.DOUBLE: double_text,
}
_UNQUOTED = frozenset(
    {*INTEGER_BITS, *_JAVA_TEXT, BasicType.BIG_INT, BasicType.BIG_DEC, BasicType.BOOLEAN}
)


def dialect_of(schema: CsvSchema) -> dict[str, Any]:
    """The arguments for the csv module. Also removes the module's limit for the size of a field."""
    csv.field_size_limit(sys.maxsize)
    return {
        "delimiter": schema.column_separator,
        "quotechar": schema.quote_char,
        "quoting": csv.QUOTE_NONE if schema.quote_char is None else csv.QUOTE_MINIMAL,
        "escapechar": schema.escape_char,
        "doublequote": True,
        "strict": True,
    }


def row_reader(schema: CsvSchema) -> Callable[[Sequence[Sequence[str]]], Sequence[Row]]:
    """The function that converts lists of fields to rows. It raises ValueError if a field does not have its type."""
    names = schema.names
    reader_of = _lenient_reader if schema.errors_are_null else _column_reader
    readers = [reader_of(column, schema.null_value) for column in schema.columns]

    def rows_of(fields: Sequence[Sequence[str]]) -> Sequence[Row]:
        if schema.errors_are_null:
            fields = [[*each, *repeat(_MISSING, len(names) - len(each))] for each in fields]
        widths = set(map(len, fields))
        if len(names) + 1 in widths:
            fields = [_without_blank_end(each, len(names)) for each in fields]
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
        return Columns.of_fields(names, columns)

    return rows_of


def _without_blank_end(fields: Sequence[str], width: int) -> Sequence[str]:
    """The fields without a blank field after the last column. As in Jackson, a separator may end a line."""
    return fields[:width] if len(fields) == width + 1 and not fields[-1].strip(" \t") else fields


def unescaped(schema: CsvSchema) -> Callable[[str], str]:
    """The function that replaces escapes of control characters by escaped control characters, for the csv module."""
    escape = schema.escape_char
    if escape is None:
        return lambda text: text
    pairs = re.compile(f"{re.escape(escape)}(.)", re.DOTALL)
    return lambda text: pairs.sub(
        lambda found: escape + _CONTROLS.get(found[1], found[1]) if escape in text else text, text
    )


def quoting(schema: CsvSchema) -> Callable[[str], str]:
    """The function that quotes a text if necessary, like Jackson's CsvEncoder.

    Jackson quotes a text if it is longer than 24 UTF-16 code units. It also quotes a text with a character whose code
    is not greater than the greatest code of separator, quote and line end.

    The function raises a ValueError if a text needs quotes, but the schema has none.
    """
    quote, escape = schema.quote_char, schema.escape_char
    if quote is None:
        return _without_quotes(schema)
    greatest = max(schema.column_separator + quote + schema.line_separator)
    escapes = "" if escape is None else re.escape(escape)
    is_special = re.compile(f"[\0-{re.escape(greatest)}{escapes}]").search

    def quoted(text: str) -> str:
        if not (is_special(text) or _is_long(text)):
            return text
        inner = text.replace(quote, quote + quote)
        if escape is not None:
            inner = inner.replace(escape, escape + escape)
        return f"{quote}{inner}{quote}"

    return quoted


def _is_long(text: str) -> bool:
    units = len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
    return units > _LONGEST_UNQUOTED


def _without_quotes(schema: CsvSchema) -> Callable[[str], str]:
    escape = schema.escape_char
    special = re.compile(f"[{re.escape(schema.column_separator + (escape or ''))}\r\n]")
    comments = schema.allow_comments

    def checked(text: str) -> str:
        if comments and _is_comment(text):
            raise ValueError(
                "a row cannot be written as CSV (it begins as a comment, and the schema has no quotes)"
            )
        found = special.search(text)
        if found is None:
            return text
        if escape is None:
            raise ValueError(
                f"a row cannot be written as CSV ({text!r} has {found[0]!r}, and the schema has neither quotes "
                "nor an escape character)"
            )
        return special.sub(lambda each: escape + each[0], text)

    return checked


def field_writer(schema: CsvSchema) -> Callable[[Iterable[Any]], list[tuple[str, ...]]]:
    """The function that converts rows to tuples of fields, with quotes where necessary."""
    row_type = schema.row_type
    null = "" if schema.null_value is None else schema.null_value
    quoted = quoting(schema)
    writers = [_field_of(column, null, quoted) for column in schema.columns]

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


def _lenient_reader(
    column: CsvColumn, null_value: str | None
) -> Callable[[Sequence[str]], Sequence[Any]]:
    read = _or_none(_reader(column, null_value, _or_none), _nulls(column.type_info, null_value))
    return lambda texts: list(map(read, texts))


def _or_null(read: Callable[[str], Any], nulls: set[str]) -> Callable[[str], Any]:
    """The reader with texts that mean None."""
    return lambda text: None if text in nulls else read(text)


def _or_none(read: Callable[[str], Any], nulls: set[str]) -> Callable[[str], Any]:
    """The reader with texts that mean None. What is missing or malformed is None, too."""

    def value_of(text: str) -> Any:
        if text is _MISSING or text in nulls:
            return None
        try:
            return read(text)
        except MALFORMED:
            return None

    return value_of


def _nulls(kind: TypeInformation[Any], null_value: str | None) -> set[str]:
    """The texts that mean None, as a field or as an element of an array."""
    nulls = {null_value} if null_value is not None else set()
    if isinstance(kind, LISTS) and not is_bytes(kind):
        return nulls  # empty text is an empty list, not None
    if isinstance(kind, RowTypeInfo):
        return {*nulls, ""}
    # Empty text means None for most types, but it is a value of bytes.
    if not _is_text(kind) and (null_value is None or not is_bytes(kind)):
        nulls.add("")
    return nulls


def _is_text(kind: TypeInformation[Any]) -> bool:
    return isinstance(kind, BasicTypeInfo) and kind.basic_type is BasicType.STRING


def _reader(
    column: CsvColumn,
    null_value: str | None,
    guarded: Callable[[Callable[[str], Any], set[str]], Callable[[str], Any]] = _or_null,
) -> Callable[[str], Any]:
    """The function that reads the text of a column. `guarded` wraps the readers of elements, and of the fields of a row."""
    kind = column.type_info
    if isinstance(kind, RowTypeInfo):
        fields = [
            guarded(_scalar(_reader_of(each), column), _nulls(each, null_value))
            for each in kind.field_types
        ]
        row_of, row_separator = Row(*kind.get_field_names()), column.separator

        def row(text: str) -> Row:
            texts = text.split(row_separator) if row_separator else [text]
            if len(texts) < len(fields) and guarded is _or_null:
                raise ValueError(f"{text!r} has {len(texts)} fields, expected {len(fields)}")
            texts += [_MISSING] * (len(fields) - len(texts))
            return row_of(*(read(each) for read, each in zip(fields, texts, strict=False)))

        return row
    if isinstance(kind, LISTS) and not is_bytes(kind):
        element = guarded(
            _scalar(_reader_of(kind.element_type), column), _nulls(kind.element_type, null_value)
        )
        separator = column.separator

        def elements(text: str) -> list[Any]:
            texts = text.split(separator) if separator else [text]
            return list(map(element, texts)) if text else []

        return elements
    return _scalar(_reader_of(kind), column)


def _field_of(column: CsvColumn, null: str, quoted: Callable[[str], str]) -> Callable[[Any], str]:
    text_of = _text_of(column, null)
    if _kind_of(column.type_info) in _UNQUOTED:
        return text_of
    return lambda value: quoted(text_of(value))


def _text_of(column: CsvColumn, null: str) -> Callable[[Any], str]:
    kind, separator = column.type_info, column.separator
    if isinstance(kind, LISTS) and not is_bytes(kind):
        element = _scalar(_writer_of(kind.element_type), column)
        return lambda values: separator.join(
            null if value is None else element(value) for value in values
        )
    if isinstance(kind, RowTypeInfo):
        fields = [_scalar(_writer_of(each), column) for each in kind.field_types]
        return lambda row: separator.join(
            null if value is None else write(value)
            for write, value in zip(fields, row, strict=True)
        )
    return _scalar(_writer_of(kind), column)


def check_columns(schema: CsvSchema) -> None:
    """Checks the types of the columns.

    Raises:
        UnsupportedFeatureError: A column has a type without a text in CSV.
    """
    for column in schema.columns:
        _reader(column, schema.null_value)


def _kind_of(kind: TypeInformation[Any]) -> BasicType | None:
    return kind.basic_type if isinstance(kind, BasicTypeInfo) else None


def _writer_of(kind: TypeInformation[Any]) -> Callable[[Any], str] | None:
    if isinstance(kind, BigDecimalTypeInfo):
        return partial(_decimal_text, kind)
    return _JAVA_TEXT.get(_kind_of(kind)) or text_writer(kind)


def _reader_of(kind: TypeInformation[Any]) -> Callable[[str], Any] | None:
    read = text_reader(kind)
    if read is not None and isinstance(kind, BigDecimalTypeInfo):
        return lambda text: _in_scale(read(text), kind)
    return read


def _decimal_text(kind: BigDecimalTypeInfo, value: Any) -> str:
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    if not exact.is_finite():
        raise ValueError(f"{value!r} is not a decimal")
    scaled = _in_scale(exact, kind)
    return "" if scaled is None else str(_without_zeros(scaled))


def _in_scale(value: Decimal, kind: BigDecimalTypeInfo) -> Decimal | None:
    """The decimal, rounded to the scale. None if it has too many digits."""
    if value and value.adjusted() >= kind.precision - kind.scale:
        return None  # without its digits: 1E+999999999999 does not fit into memory
    scaled = kind.rounded(value)
    return scaled if len(scaled.as_tuple().digits) <= kind.precision else None


def _without_zeros(value: Decimal) -> Decimal:
    """Like Java's BigDecimal.stripTrailingZeros, which Jackson calls."""
    return value.normalize(EXACTLY) if value else Decimal(0)


def _scalar(convert: Callable[[Any], Any] | None, column: CsvColumn) -> Callable[[Any], Any]:
    if convert is None:
        raise UnsupportedFeatureError(
            f"CSV does not support the column '{column.name}' of type {column.type_info!r}; choose another type: "
            "elements of arrays and fields of rows are single values"
        )
    return convert


_MARK = "\ufeff"
_MISSING: Any = object()


class CsvReaderFormat(LineRecordsFormat[Row]):
    """Reads rows of a schema. Flink: CsvReaderFormat.

    If fields may contain line ends (in quotes, or escaped), a file cannot be split, and one subtask reads all of it.
    Call `one_record_per_line()` if they never do. The csv module of the standard library parses the lines, in C.
    """

    def __init__(self, schema: CsvSchema) -> None:
        self.schema = schema
        self.is_line_by_line = schema.quote_char is None and schema.escape_char is None

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Reads rows with the columns of the schema.

        Raises:
            TypeError: The argument is not a CsvSchema.
            ValueError: The schema has no columns.
        """
        require_instance(schema, CsvSchema, "CsvReaderFormat.for_schema", "a CsvSchema")
        if not schema.columns:
            raise ValueError("CsvReaderFormat.for_schema got a schema without columns; add some")
        check_columns(schema)
        return CsvReaderFormat(schema)

    def one_record_per_line(self) -> CsvReaderFormat:
        """Declares that no field contains a line end. Large files are then split, and read by several subtasks.

        A line with an unclosed quote is then malformed. Not in Flink.
        """
        changed = copy.copy(self)
        changed.is_line_by_line = True
        return changed

    def with_ignore_parse_errors(self) -> CsvReaderFormat:
        """Skips malformed records, like `.on_malformed("skip")` of the source's builder."""
        changed = copy.copy(self)
        changed.on_malformed = checked_policy("skip")
        return changed

    def can_be_cut(self, path: str) -> bool:
        """True if each line is a record, and at most the first line is skipped."""
        schema = self.schema
        skips_more = schema.skip_first_data_row or (schema.use_header and schema.allow_comments)
        return self.is_line_by_line and not skips_more and not is_compressed(path)

    def get_produced_type(self) -> TypeInformation[Any]:
        """The row type of the columns. Its Java text is that of Flink's RowData."""
        return replace(self.schema.row_type, is_row_data=True)

    @property
    def row_names(self) -> Sequence[str]:
        """The names of the columns."""
        return self.schema.names

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[Row]]:
        """Yields the rows; line by line if the file can be split."""
        if not self.can_be_cut(part.path):
            return _rows_of_whole_file(self.schema, part, batch_size, malformed)
        return super().read(part, batch_size, malformed)

    def first_line(self, part: FileRange) -> int:
        """1 if this part of the file contains the header, else 0."""
        if part.start or not self.schema.use_header:
            return 0
        if self.schema.strict_headers:
            for block in line_blocks(part):
                # Other lines of the block need not be UTF-8: they are malformed records.
                text = with_line_feeds(block.data.decode("utf-8", "replace"))
                line = text.removeprefix(_MARK).partition("\n")[0]
                fields = next(csv.reader([line], **dialect_of(self.schema)))
                _check_header(self.schema, fields, part.path)
                break
        return 1

    def decoder(self) -> Decode:
        """The function that decodes lines to rows."""
        return csv_decoder(self.schema)


def csv_decoder(schema: CsvSchema) -> Decode:
    """The function that decodes lines to rows. Empty lines are skipped."""
    dialect, rows_of, skips_comments = dialect_of(schema), row_reader(schema), schema.allow_comments
    prepare = unescaped(schema)
    blank = _blank_line(schema)

    def decode(lines: Sequence[str]) -> Sequence[Any]:
        if skips_comments:
            lines = [line for line in lines if not _is_comment(line)]
        try:
            fields = list(csv.reader(map(prepare, lines), **dialect))
        except csv.Error as error:
            raise ValueError(str(error)) from error
        if len(fields) != len(lines):
            raise ValueError("a quote is not closed on its line")
        if [] in fields:
            fields = [row or blank for row in fields if row or blank]
        return rows_of(fields) if fields else []

    return decode


def _is_comment(line: str) -> bool:
    """Whether a line is a comment, in a schema that allows comments. As in Jackson, spaces may precede the #."""
    return line.lstrip(" ").startswith("#")


def _blank_line(schema: CsvSchema) -> list[str]:
    """The fields of a blank line: one empty field for a schema with one column. Otherwise the line is skipped."""
    return [""] if len(schema) == 1 else []


def _check_header(schema: CsvSchema, fields: Sequence[str], path: str) -> None:
    if list(fields) != schema.names:
        raise ValueError(
            f"'{path}' has the header {', '.join(fields)}, but the schema has the columns "
            f"{', '.join(schema.names)}; change one of them, or remove set_strict_headers()"
        )


def _rows_of_whole_file(
    schema: CsvSchema, part: FileRange, batch_size: int, malformed: MalformedRecords
) -> Iterator[Sequence[Row]]:
    """Reads the rows of a whole file, whose fields may contain line ends."""
    rows_of = row_reader(schema)
    records = _Records(schema, part, malformed)
    to_skip = schema.use_header + schema.skip_first_data_row
    if schema.use_header:
        header = records.first()
        if header is not None and schema.strict_headers:
            _check_header(schema, header, part.path)
        to_skip -= 1
    if to_skip:
        records.first()
    while found := records.take(batch_size):
        try:
            rows = rows_of([fields for _, fields in found])
        except MALFORMED:
            rows = _good_ones(found, rows_of, records.refuse)
        if rows:
            yield rows


def _good_ones(
    found: list[tuple[int, list[str]]],
    rows_of: Callable[[Sequence[Sequence[str]]], Sequence[Row]],
    refuse: Callable[[int, str, BaseException], None],
) -> list[Row]:
    rows: list[Row] = []
    for line, fields in found:
        try:
            rows += rows_of([fields])
        except MALFORMED as error:  # noqa: PERF203 - only where a batch has a bad row
            refuse(line, ",".join(fields), error)
    return rows


def _are_utf_8(fields: Sequence[str]) -> bool:
    """Whether the fields can be encoded. Bytes that are not UTF-8 were decoded to characters that cannot be encoded."""
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return False
    return True


class _Records:
    """The records of a file as lists of fields, each with the number of its first line, from 1."""

    def __init__(self, schema: CsvSchema, part: FileRange, malformed: MalformedRecords) -> None:
        self._path = part.path
        self._malformed = malformed
        self._skips_comments = schema.allow_comments
        self._prepare = unescaped(schema)
        self._blank = _blank_line(schema)
        self._line = 0
        self._has_bad_bytes = False
        self._is_refused = False
        self._begins = (
            True  # whether the next line begins a record: there are no comments inside a record
        )
        self._reader = csv.reader(self._lines(part), **dialect_of(schema))

    def take(self, count: int) -> list[tuple[int, list[str]]]:
        """Returns the next records, up to a maximum number. An empty result means the end."""
        found: list[tuple[int, list[str]]] = []
        while len(found) < count:
            record = self._next()
            if record is None:
                break
            if record[1]:
                found.append(record)
        return found

    def first(self) -> list[str] | None:
        """The fields of the next record, which is not returned by `take`. None at the end; empty if it is malformed."""
        while record := self._next():
            if record[1] or self._is_refused:
                return record[1]
        return None

    def _next(self) -> tuple[int, list[str]] | None:
        """The line and the fields of the next record. There are none for a blank line, and for a malformed record."""
        first = self._line + 1
        self._begins = True
        self._is_refused = False
        try:
            fields = next(self._reader, None)
        except csv.Error as error:
            self.refuse(first, "", error)
            return first, []
        if fields is None:
            return None
        if self._has_bad_bytes and not _are_utf_8(fields):
            shown = ",".join(fields).encode("utf-8", "surrogateescape")
            self.refuse(first, shown.decode("utf-8", "replace"), UnicodeError())
            return first, []
        return first, fields or self._blank

    def refuse(self, line: int, text: str, error: BaseException) -> None:
        """Reports a malformed record."""
        self._is_refused = True
        record = MalformedRecord(self._path, f"line {line}", text, reason_of(error))
        self._malformed.take(record, error)

    def _text_of(self, block: LineBlock) -> str:
        try:
            return block.data.decode()
        except UnicodeDecodeError:
            self._has_bad_bytes = True
            return block.data.decode("utf-8", "surrogateescape")

    def _lines(self, part: FileRange) -> Iterator[str]:
        """Yields the lines with their ends, which may be inside a field. Comments become empty lines."""
        # newline="" keeps all kinds of line ends.
        texts = map(self._text_of, line_blocks(part))
        for line in chain.from_iterable(io.StringIO(text, newline="") for text in texts):
            self._line += 1
            text = line.removeprefix(_MARK) if self._line == 1 else line
            begins, self._begins = self._begins, False
            if begins and self._skips_comments and _is_comment(text):
                self._begins = True
                continue
            yield self._prepare(text)
