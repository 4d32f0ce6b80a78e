"""The columns of a CSV file, and how its text is cut into them, with PyFlink's builder."""

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
    """A column; `separator` stands between the elements of an array."""

    name: str
    type_info: TypeInformation[Any]
    separator: str = ARRAY_SEPARATOR


@dataclass(frozen=True)
class CsvSchema:
    """Columns, and the characters between and around fields. Flink: Jackson's CsvSchema.

    Attributes:
        quote_char: None where fields are never quoted.
        escape_char: None where no character escapes the next one.
        line_separator: What ends a written line; all kinds are read.
        null_value: The text that stands for None in every column. Where it is None, empty text does, in
            all columns but those of strings, where it is an empty string.
        use_header: A file's first line has the columns' names: skipped, or written.
        strict_headers: The names must be those of the columns.
        skip_first_data_row: The next line is skipped too.
        allow_comments: Lines that begin with # are skipped.
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

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Starts a schema without columns."""
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
        """The columns' names."""
        return [column.name for column in self.columns]

    @property
    def row_type(self) -> RowTypeInfo:
        """The type of the rows."""
        return Types.ROW_NAMED(self.names, [column.type_info for column in self.columns])


def _kind_of(type_info: TypeInformation[Any]) -> str:
    """Jackson's name for the kind of a column."""
    if isinstance(type_info, ListTypeInfo):
        return "ARRAY"
    if type_info == Types.BOOLEAN():
        return "BOOLEAN"
    return "STRING" if type_info == Types.STRING() else "NUMBER"


@dataclass
class CsvSchemaBuilder:
    """Builds a CSV schema. Its methods return the builder."""

    _columns: list[CsvColumn] = field(default_factory=list)
    _settings: CsvSchema = field(default_factory=CsvSchema)
    _array_separator: str = ARRAY_SEPARATOR

    def build(self) -> CsvSchema:
        """The schema.

        Raises:
            ValueError: A column's name comes twice.
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
        """Adds a column of any type that has a text: dates, times, decimals, bytes. Not in Flink."""
        self._columns.append(CsvColumn(name, type_of_field(type_info, "add_column")))
        return self

    def add_array_column(
        self, name: str, separator: str = ARRAY_SEPARATOR, element_type: Any = None
    ) -> CsvSchemaBuilder:
        """Adds a column of lists; of strings if no type is given."""
        element = (
            Types.STRING()
            if element_type is None
            else type_of_field(element_type, "add_array_column")
        )
        self._columns.append(CsvColumn(name, Types.LIST(element), separator))
        return self

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Adds a column of true and false."""
        return self.add_column(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: Any = None) -> CsvSchemaBuilder:
        """Adds a column of numbers; ints of 64 bits if no type is given."""
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
        """Drops all columns."""
        self._columns.clear()
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Whether lines that begin with # are skipped."""
        return self._set(allow_comments=allow)

    def set_any_property_name(self, name: str) -> NoReturn:
        """Not supported: rows have the columns that are named.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"CsvSchemaBuilder.set_any_property_name({name!r}) is not supported: rows have "
            f"exactly the columns that the schema declares"
        )

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Array columns that have no separator of their own have one element."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Takes the separator of one array column away: it has that of `set_array_element_separator`."""
        self._columns[index] = replace(self._columns[index], separator="")
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Sets the separator of array columns that have none: `add_array_column` gives one, a semicolon by default."""
        self._array_separator = separator
        return self

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Sets what stands between columns; a comma if not called."""
        return self._set(column_separator=_one_character(char, "column separator"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """No character escapes another: the default."""
        return self._set(escape_char=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Sets what takes the next character its meaning."""
        return self._set(escape_char=_one_character(char, "escape char"))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        r"""Sets what ends a written line; \n if not called. All kinds are read."""
        return self._set(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        r"""Sets the text that stands for None, such as \N."""
        return self._set(null_value=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Fields are never quoted."""
        return self._set(quote_char=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Sets what stands around fields with special characters; a double quote if not called."""
        return self._set(quote_char=_one_character(char, "quote char"))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Whether the first line (the first one after the header) is skipped."""
        return self._set(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Whether the header's names must be those of the columns, in order."""
        return self._set(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Whether a file begins with a line of the columns' names."""
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
