"""TableDescriptor and Schema."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.dsl.argument_checks import at_call, checked
from opchain.compiler.table.data_types import DataType, DataTypes, RowField, RowType, data_type_of
from opchain.compiler.table.expression import Expression
from opchain.runtime.configuration.options import ConfigOption
from opchain.runtime.configuration.text import to_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MetadataColumn(NamedTuple):
    """A column that the connector fills: `key` is the connector's name for it."""

    name: str
    data_type: DataType
    key: str
    is_virtual: bool


class Watermark(NamedTuple):
    """WATERMARK FOR column AS expression."""

    column: str
    expression: str


@dataclass(frozen=True)
class Schema:
    """Columns by name, each with its type.

    Attributes:
        columns: The physical columns, which the connector reads and writes.
        computed: Names of computed columns, and their expressions in SQL.
        metadata: Metadata columns.
        order: The names of all columns as they were declared.
        time: The watermark, or None.
        keys: The primary key, for connectors that update rows.
    """

    columns: tuple[tuple[str, DataType], ...]
    computed: tuple[tuple[str, str], ...] = ()
    metadata: tuple[MetadataColumn, ...] = ()
    order: tuple[str, ...] = ()
    time: Watermark | None = None
    keys: tuple[str, ...] = ()

    @staticmethod
    def new_builder() -> Schema.Builder:
        """A builder without columns."""
        return Schema.Builder()

    def __str__(self) -> str:
        types = dict(self.columns)
        computed = dict(self.computed)
        metadata = {each.name: each for each in self.metadata}
        lines = []
        for name in self.order or types:
            if name in types:
                lines.append(f"  `{name}` {types[name]}")
            elif name in computed:
                lines.append(f"  `{name}` AS [{computed[name]}]")
            else:
                found = metadata[name]
                virtual = " VIRTUAL" if found.is_virtual else ""
                lines.append(f"  `{name}` {found.data_type} METADATA FROM '{found.key}'{virtual}")
        if self.time is not None:
            lines.append(f"  WATERMARK FOR `{self.time.column}` AS [{self.time.expression}]")
        if self.keys:
            lines.append(
                f"  PRIMARY KEY ({', '.join(f'`{key}`' for key in self.keys)}) NOT ENFORCED"
            )
        return "(\n{}\n)".format(",\n".join(lines))

    class Builder:
        """Builds a schema. Its methods return the builder."""

        def __init__(self) -> None:
            self._columns: dict[str, DataType] = {}
            self._computed: dict[str, str] = {}
            self._metadata: dict[str, MetadataColumn] = {}
            self._order: list[str] = []
            self._time: Watermark | None = None
            self._keys: tuple[str, ...] = ()

        def column(self, column_name: str, data_type: DataType | str) -> Schema.Builder:
            """Adds a physical column. Its type is a DataType or SQL text.

            Raises:
                ValueError: There is a column of this name, or the text names no supported type.
            """
            call = "Schema.Builder.column"
            self._add(column_name, call)
            self._columns[column_name] = _type(data_type, call)
            return self

        def column_by_expression(self, column_name: str, expr: str | Expression) -> Schema.Builder:
            """Adds a column that is computed from others: SQL's text, or an Expression.

            Raises:
                ValueError: There is a column of this name.
            """
            call = "Schema.Builder.column_by_expression"
            self._add(column_name, call)
            self._computed[column_name] = _sql(expr, call)
            return self

        def column_by_metadata(
            self,
            column_name: str,
            data_type: DataType | str,
            metadata_key: str | None = None,
            is_virtual: bool = False,
        ) -> Schema.Builder:
            """Adds a column that the connector fills, such as the offset of a Kafka message.

            Raises:
                ValueError: There is a column of this name, or the text names no supported type.
            """
            call = "Schema.Builder.column_by_metadata"
            self._add(column_name, call)
            self._metadata[column_name] = MetadataColumn(
                column_name, _type(data_type, call), metadata_key or column_name, is_virtual
            )
            return self

        def watermark(self, column_name: str, watermark_expr: str | Expression) -> Schema.Builder:
            """Declares the event time: a TIMESTAMP column, and `column - INTERVAL '5' SECOND`.

            An Expression, such as `col("ts") - lit(5).seconds`, may replace the text.
            """
            self._time = Watermark(column_name, _sql(watermark_expr, "Schema.Builder.watermark"))
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            """Declares the key; JDBC tables update the row with this key."""
            self._keys = column_names
            return self

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            """Declares the key; its name has no meaning."""
            checked(constraint_name, str, "Schema.Builder.primary_key_named", "the name")
            return self.primary_key(*column_names)

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

        def from_row_data_type(self, data_type: DataType) -> Schema.Builder:
            """Adds a column for each field of a ROW."""
            row: Any = checked(data_type, RowType, "Schema.Builder.from_row_data_type", "the type")
            for each in row.fields:
                self.column(each.name, each.data_type)
            return self

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """Adds the columns of another schema, its watermark and its key."""
            checked(unresolved_schema, Schema, "Schema.Builder.from_schema", "the schema")
            given = unresolved_schema
            self._columns |= given.columns
            self._computed |= given.computed
            self._metadata |= {each.name: each for each in given.metadata}
            self._order += given.order or [name for name, _ in given.columns]
            self._time, self._keys = given.time, given.keys
            return self

        def build(self) -> Schema:
            """The schema."""
            only_physical = not self._computed and not self._metadata
            return Schema(
                tuple(self._columns.items()),
                tuple(self._computed.items()),
                tuple(self._metadata.values()),
                () if only_physical else tuple(self._order),
                self._time,
                self._keys,
            )

        def _add(self, name: str, call: str) -> None:
            checked(name, str, call, "the column's name")
            if name in self._order:
                raise ValueError(f"{at_call(call)}: there are two columns '{name}'")
            self._order.append(name)


def _sql(expression: str | Expression, call: str) -> str:
    return str(checked(expression, (str, Expression), call, "the expression"))


def _type(data_type: DataType | str, call: str) -> DataType:
    checked(data_type, (DataType, str), call, "the column's type")
    return data_type_of(data_type) if isinstance(data_type, str) else data_type


@dataclass(repr=False)
class TableSchema:
    """The columns of a table or of a result. Flink: TableSchema, which its Table.get_schema() returns.

    >>> schema = TableSchema(["id"], [data_type_of("INT NOT NULL")])
    >>> schema.get_field_names(), schema.get_field_data_type("id").is_nullable
    (['id'], False)
    """

    field_names: Sequence[str]
    data_types: Sequence[DataType]

    def get_field_names(self) -> list[str]:
        """The names, in order."""
        return list(self.field_names)

    def get_field_data_types(self) -> list[DataType]:
        """The types, in order."""
        return list(self.data_types)

    def get_field_count(self) -> int:
        """The number of columns."""
        return len(self.field_names)

    def get_field_name(self, field_index: int) -> str | None:
        """The name of a column by its number from 0; None if there is none."""
        return self.field_names[field_index] if 0 <= field_index < len(self.field_names) else None

    def get_field_data_type(self, field: int | str) -> DataType | None:
        """The type of a column by its number from 0 or by its name; None if there is none."""
        if isinstance(field, str):
            field = list(self.field_names).index(field) if field in self.field_names else -1
        return self.data_types[field] if 0 <= field < len(self.data_types) else None

    def to_row_data_type(self) -> RowType:
        """A ROW with a field for each column."""
        fields = zip(self.field_names, self.data_types, strict=True)
        return DataTypes.ROW([RowField(*each) for each in fields], nullable=False)

    def copy(self) -> TableSchema:
        """An equal schema."""
        return replace(self)

    def __hash__(self) -> int:
        return hash((*self.field_names, *self.data_types))

    def __repr__(self) -> str:
        columns = zip(self.field_names, self.data_types, strict=True)
        return "root\n" + "".join(f" |-- {name}: {of}\n" for name, of in columns)


@dataclass(frozen=True)
class FormatDescriptor:
    """A format and its options, for `TableDescriptor.Builder.format`. Flink: FormatDescriptor."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:  # noqa: A002 - PyFlink's name
        """A builder for this format."""
        checked(format, str, "FormatDescriptor.for_format", "the format")
        return FormatDescriptor.Builder(FormatDescriptor(format))

    def get_format(self) -> str:
        """The name of the format."""
        return self.format

    def get_options(self) -> dict[str, str]:
        """The options, without the name of the format before them."""
        return dict(self.options)

    class Builder:
        """Builds a descriptor of a format. Its methods return the builder."""

        def __init__(self, descriptor: FormatDescriptor) -> None:
            self._descriptor = descriptor

        def option(self, key: str | ConfigOption[Any], value: Any) -> FormatDescriptor.Builder:
            """Sets an option of the format, such as 'field-delimiter'."""
            name = key.key if isinstance(key, ConfigOption) else key
            checked(name, str, "FormatDescriptor.Builder.option", "the option's name")
            options = {**self._descriptor.options, name: to_text(value)}
            self._descriptor = replace(self._descriptor, options=options)
            return self

        def build(self) -> FormatDescriptor:
            """The descriptor."""
            return self._descriptor


@dataclass(frozen=True)
class TableDescriptor:
    """The description of a table, for `create_temporary_table` and `from_descriptor`."""

    connector: str
    schema: Schema | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    partition_keys: tuple[str, ...] = ()

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
        """The columns whose values are in the names of folders."""
        return list(self.partition_keys)

    def get_comment(self) -> str | None:
        """The comment."""
        return self.comment

    class Builder:
        """Builds a descriptor. Its methods return the builder."""

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

        def format(
            self,
            format: str | FormatDescriptor,  # noqa: A002 - PyFlink's name
            format_option: ConfigOption[str] | None = None,
        ) -> TableDescriptor.Builder:
            """Sets the format: json, csv, avro or parquet, or a descriptor with options.

            Args:
                format: The format.
                format_option: The option that names the format; 'format' by default.
            """
            call = "TableDescriptor.Builder.format"
            checked(format, (str, FormatDescriptor), call, "the format")
            name = "format" if format_option is None else format_option.key
            if isinstance(format, str):
                return self.option(name, format)
            prefix = name.removesuffix("format") + format.format
            for key, value in format.options.items():
                self.option(f"{prefix}.{key}", value)
            return self.option(name, format.format)

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            """Sets the columns whose values are in the names of folders."""
            for each in partition_keys:
                checked(each, str, "TableDescriptor.Builder.partitioned_by", "the column")
            self._descriptor = replace(self._descriptor, partition_keys=partition_keys)
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """Sets the comment of the table."""
            self._descriptor = replace(self._descriptor, comment=comment)
            return self

        def build(self) -> TableDescriptor:
            """The descriptor."""
            return self._descriptor
