"""A table as a program describes it: a connector, its options, and columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import checked
from opchain.compiler.table.refusals import refuses
from opchain.compiler.table.schema import Schema
from opchain.runtime.configuration.options import ConfigOption
from opchain.runtime.configuration.text import to_text

if TYPE_CHECKING:
    from collections.abc import Mapping


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
