"""TableDescriptor and Schema, as a program writes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.table.data_types import DataType, data_type_of
from opchain.compiler.table.refusals import refused, refuses
from opchain.runtime.configuration.options import ConfigOption
from opchain.runtime.configuration.text import to_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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


@dataclass(frozen=True)
class TableDescriptor:
    """What `create_temporary_table` and `from_descriptor` take."""

    connector: str
    schema: Schema | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """A builder for a table of this connector."""
        checked(connector, str, "TableDescriptor.for_connector", "the connector")
        return TableDescriptor.Builder(TableDescriptor(connector))

    def get_schema(self) -> Schema | None:
        """The columns."""
        return self.schema

    def get_options(self) -> dict[str, str]:
        """The options, the connector among them."""
        return {"connector": self.connector, **self.options}

    def get_partition_keys(self) -> list[str]:
        """None: such tables are not partitioned."""
        return []

    def get_comment(self) -> str | None:
        """The comment."""
        return self.comment

    class Builder:
        """Gathers a table's parts; the methods give it back."""

        def __init__(self, descriptor: TableDescriptor) -> None:
            self._descriptor = descriptor

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """Sets the columns."""
            checked(schema, Schema, "TableDescriptor.Builder.schema", "the schema")
            self._descriptor = replace(self._descriptor, schema=schema)
            return self

        def option(self, key: str | ConfigOption[Any], value: Any) -> TableDescriptor.Builder:
            """Sets an option of the connector."""
            name = key.key if isinstance(key, ConfigOption) else key
            checked(name, str, "TableDescriptor.Builder.option", "the option's name")
            options = {**self._descriptor.options, name: to_text(value)}
            self._descriptor = replace(self._descriptor, options=options)
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """Says what the table is for."""
            self._descriptor = replace(self._descriptor, comment=comment)
            return self

        def build(self) -> TableDescriptor:
            """The descriptor."""
            return self._descriptor


for _name, _instead in (
    ("format", "read files with a FileSource and parse the lines with map()"),
    ("partitioned_by", "a FileSink writes buckets"),
):
    setattr(TableDescriptor.Builder, _name, refuses(f"TableDescriptor.Builder.{_name}", _instead))
