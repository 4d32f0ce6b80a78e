"""The columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.table.data_types import DataType, data_type_of
from opchain.compiler.table.refusals import refused, refuses

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Schema:
    """Columns by name, each with its type."""

    columns: tuple[tuple[str, DataType], ...]

    @staticmethod
    def new_builder() -> Schema.Builder:
        """A builder without columns."""
        return Schema.Builder()

    def __str__(self) -> str:
        lines = ",\n".join(f"  `{name}` {data_type}" for name, data_type in self.columns)
        return f"(\n{lines}\n)"

    class Builder:
        """Gathers columns; the methods give it back."""

        def __init__(self) -> None:
            self._columns: dict[str, DataType] = {}

        def column(self, column_name: str, data_type: DataType | str) -> Schema.Builder:
            """Adds a column; its type may be SQL's text of it.

            Raises:
                ValueError: There is a column of this name, or the text names no supported type.
            """
            call = "Schema.Builder.column"
            checked(column_name, str, call, "the column's name")
            checked(data_type, (DataType, str), call, "the column's type")
            if column_name in self._columns:
                raise ValueError(f"{at_call(call)}: there are two columns '{column_name}'")
            if isinstance(data_type, str):
                data_type = data_type_of(data_type)
            if not data_type.is_column:
                raise refused(
                    f"{call}('{column_name}', {data_type})",
                    "columns are CHAR, VARCHAR, STRING, BOOLEAN, DECIMAL or numbers",
                )
            self._columns[column_name] = data_type
            return self

        def from_fields(
            self, field_names: Sequence[str], field_data_types: Sequence[DataType | str]
        ) -> Schema.Builder:
            """Adds a column for each name and type.

            Raises:
                ValueError: There are more of one than of the other.
            """
            if len(field_names) != len(field_data_types):
                raise ValueError(
                    f"{at_call('Schema.Builder.from_fields')} got {len(field_names)} names and "
                    f"{len(field_data_types)} types; each column needs both"
                )
            for name, data_type in zip(field_names, field_data_types):  # noqa: B905 - checked above
                self.column(name, data_type)
            return self

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """Adds the columns of another schema."""
            checked(unresolved_schema, Schema, "Schema.Builder.from_schema", "the schema")
            for name, data_type in unresolved_schema.columns:
                self.column(name, data_type)
            return self

        def build(self) -> Schema:
            """The schema."""
            return Schema(tuple(self._columns.items()))


for _name in ("column_by_expression", "column_by_metadata", "watermark", "primary_key"):
    setattr(
        Schema.Builder,
        _name,
        refuses(
            f"Schema.Builder.{_name}",
            "a schema has physical columns alone; compute, assign timestamps and keys on the stream",
        ),
    )
