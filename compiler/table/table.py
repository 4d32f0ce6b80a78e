"""A table, as far as it becomes a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.compiler.table.refusals import refuses

if TYPE_CHECKING:
    from opchain.compiler.table.table_descriptor import Schema, TableDescriptor


@dataclass(frozen=True)
class Table:
    """A described table under its path; `StreamTableEnvironment.to_data_stream` makes a stream of it."""

    path: str
    descriptor: TableDescriptor

    def get_schema(self) -> Schema | None:
        """The columns."""
        return self.descriptor.schema


for _name in (
    *("select", "alias", "filter", "where", "group_by", "distinct", "join", "left_outer_join"),
    *("right_outer_join", "full_outer_join", "join_lateral", "left_outer_join_lateral", "minus"),
    *("minus_all", "union", "union_all", "intersect", "intersect_all", "order_by", "offset"),
    *("fetch", "limit", "window", "over_window", "add_columns", "add_or_replace_columns"),
    *("rename_columns", "drop_columns", "map", "flat_map", "aggregate", "flat_aggregate"),
    *("to_pandas", "execute_insert", "execute", "explain", "print_explain", "insert_into"),
    *("get_resolved_schema", "print_schema", "to_changelog", "from_changelog"),
):
    setattr(
        Table,
        _name,
        refuses(f"Table.{_name}", "convert it to a stream with to_data_stream()"),
    )
