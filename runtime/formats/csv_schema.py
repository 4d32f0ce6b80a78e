"""CsvSchema: the columns and special characters of CSV files, with PyFlink's builder."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.formats.row_values import type_of_field
from opchain.runtime.types.container_types import ListTypeInfo
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from opchain.runtime.types.record_types import RowTypeInfo
    from opchain.runtime.types.type_information import TypeInformation

ARRAY_SEPARATOR = ";"


@dataclass(frozen=True)
class CsvColumn:
    """A column. `separator` separates the elements of an array."""

    name: str
    type_info: TypeInformation[Any]
    separator: str = ARRAY_SEPARATOR


@dataclass(frozen=True)
class CsvSchema:
    """The columns, and the characters that separate and quote fields. Flink: Jackson's CsvSchema.

    Attributes:
        quote_char: The quote; None if fields are never quoted.
        escape_char: The escape character; None for no escapes.
        line_separator: The end of written lines. Readers accept all line ends.
        null_value: The text of None in every column. If it is not set, empty text means None, except in string columns.
        use_header: Whether the first line of a file is a header, which is skipped or written.
        strict_headers: Whether the header must match the columns.
        skip_first_data_row: Whether the first line after the header is skipped.
        allow_comments: Whether lines that begin with # are skipped.
        errors_are_null: Whether a missing field, and a field whose text is malformed, is None. Otherwise the record is
            malformed.
    """

    columns: tuple[CsvColumn, ...] = ()
    column_separator: str = ","
    quote_char: str | None = '"'
    escape_char: str | None = None
    line_separator: str = "\n"
    null_value: str | None = None
    use_header: bool = False
    strict_headers: bool = False
    skip_first_data_row: bool = False
    allow_comments: bool = False
    errors_are_null: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Returns a builder for a schema without columns."""
        return CsvSchemaBuilder()

    def size(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def __len__(self) -> int:
        return self.size()

    def __str__(self) -> str:
        columns = ",".join(
            f'"{column.name}"/{_kind_of(column.type_info)}' for column in self.columns
        )
        flags = (self.use_header, self.skip_first_data_row, self.allow_comments)
        header, skip_first, comments = (str(flag).lower() for flag in flags)
        return (
            f"[CsvSchema: columns=[{columns}], header? {header}, skipFirst? {skip_first}, comments? {comments}, "
            "any-properties? N/A]"
        )

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def row_type(self) -> RowTypeInfo:
        """The row type of the columns."""
        return Types.ROW_NAMED(self.names, [column.type_info for column in self.columns])


def _kind_of(type_info: TypeInformation[Any]) -> str:
    """Jackson's name of the column's type."""
    if isinstance(type_info, ListTypeInfo):
        return "ARRAY"
    if type_info == Types.BOOLEAN():
        return "BOOLEAN"
    return "STRING" if type_info == Types.STRING() else "NUMBER"


@dataclass
class CsvSchemaBuilder:
    """Builds a CSV schema. All methods but `build` and `size` return the builder."""

    _columns: list[CsvColumn] = field(default_factory=list)
    _settings: CsvSchema = field(default_factory=CsvSchema)
    _array_separator: str = ARRAY_SEPARATOR

    def build(self) -> CsvSchema:
        """Returns the schema.

        Raises:
            ValueError: A column name occurs twice.
        """
        names = [column.name for column in self._columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"CsvSchema has the column '{twice[0]}' twice; use different names")
        columns = (
            replace(c, separator=c.separator or self._array_separator) for c in self._columns
        )
        return replace(self._settings, columns=tuple(columns))

    def add_column(self, name: str, type_info: Any) -> CsvSchemaBuilder:
        """Adds a column of any type with a text form: dates, times, decimals, bytes. Not in Flink."""
        self._columns.append(CsvColumn(name, type_of_field(type_info, "add_column")))
        return self

    def add_array_column(
        self, name: str, separator: str = ARRAY_SEPARATOR, element_type: Any = None
    ) -> CsvSchemaBuilder:
        """Adds a column of lists. The default element type is STRING."""
        element = (
            Types.STRING()
            if element_type is None
            else type_of_field(element_type, "add_array_column")
        )
        self._columns.append(CsvColumn(name, Types.LIST(element), separator))
        return self

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Adds a column of bools, written as true and false."""
        return self.add_column(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: Any = None) -> CsvSchemaBuilder:
        """Adds a column of numbers. The default type is LONG."""
        kind = (
            Types.LONG() if number_type is None else type_of_field(number_type, "add_number_column")
        )
        return self.add_column(name, kind)

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Adds a column of strings."""
        return self.add_column(name, Types.STRING())

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Adds all columns of another schema."""
        self._columns += schema.columns
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Removes all columns."""
        self._columns.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Sets whether lines that begin with # are skipped."""
        return self._set(allow_comments=allow)

    def set_any_property_name(self, name: str) -> NoReturn:
        """Not supported: rows only have the declared columns.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"CsvSchemaBuilder.set_any_property_name({name!r}) is not supported: rows have "
            f"exactly the columns that the schema declares"
        )

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Removes the default separator: arrays of columns without a separator then have one element."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Removes the separator of an array column, which then uses that of `set_array_element_separator`."""
        self._columns[index] = replace(self._columns[index], separator="")
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Sets the default separator of array elements.

        It only applies to columns without a separator: `add_array_column` sets one, a semicolon by default.
        """
        self._array_separator = separator
        return self

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Sets the separator of columns; a comma by default."""
        return self._set(column_separator=_one_character(char, "column separator"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Removes the escape character. There is none by default."""
        return self._set(escape_char=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Sets the escape character. It makes the next character a normal one."""
        return self._set(escape_char=_one_character(char, "escape char"))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        r"""Sets the end of written lines; \n by default. Readers accept all line ends."""
        return self._set(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        r"""Sets the text that means None, such as \N."""
        return self._set(null_value=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Removes the quote: fields are never quoted."""
        return self._set(quote_char=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Sets the quote for fields with special characters; a double quote by default."""
        return self._set(quote_char=_one_character(char, "quote char"))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Sets whether the first line after the header is skipped."""
        return self._set(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Sets whether the header must match the names and order of the columns."""
        return self._set(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Sets whether the first line of a file is a header."""
        return self._set(use_header=use)

    def size(self) -> int:
        """The number of columns so far."""
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    def _set(self, **changes: Any) -> CsvSchemaBuilder:
        self._settings = replace(self._settings, **changes)
        return self


def _one_character(char: str, what: str) -> str:
    if len(char) != 1:
        raise ValueError(f"the {what} of a CsvSchema is {char!r}; it must be a single character")
    return char
