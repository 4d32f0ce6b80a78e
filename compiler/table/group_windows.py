"""Windows of the Table API: `table.window(Tumble.over(...).on(...).alias("w")).group_by(col("w")).select(...)`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, checked, refuses
from opchain.compiler.table.aggregates import Aggregates
from opchain.compiler.table.expression import Expression
from opchain.compiler.table.expressions import sqlglot
from opchain.compiler.table.fields import named_fields
from opchain.compiler.table.windows import PROPERTIES, Windows, aggregated, windows_of
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.compiler.table.table import Table


@dataclass(frozen=True)
class GroupWindow:
    """A window of the Table API. Flink: GroupWindow, and classes such as TumbleWithSize for each step to it."""

    kind: str
    spans: Mapping[str, Expression]
    time: Expression | None = None
    name: str = ""

    def every(self, slide: Expression) -> GroupWindow:
        """The distance between the starts of two sliding windows."""
        checked(slide, Expression, "SlideWithSize.every", "the slide")
        return replace(self, spans={**self.spans, "SLIDE": slide})

    def on(self, time_field: Expression) -> GroupWindow:
        """The column of event time or processing time."""
        return replace(self, time=checked(time_field, Expression, "on", "the time"))

    def alias(self, alias: str) -> GroupWindow:
        """The name of the window in `group_by` and `select`."""
        return replace(self, name=checked(alias, str, "alias", "the name"))


class Tumble:
    """Windows of a fixed size without gaps: `Tumble.over(lit(10).minutes).on(col("at")).alias("w")`."""

    @classmethod
    def over(cls, size: Expression) -> GroupWindow:
        """The size of the windows."""
        return GroupWindow("TUMBLE", {"SIZE": checked(size, Expression, "Tumble.over", "the size")})


class Slide:
    """Windows that overlap: `Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("at")).alias("w")`."""

    @classmethod
    def over(cls, size: Expression) -> GroupWindow:
        """The size of the windows."""
        return GroupWindow("HOP", {"SIZE": checked(size, Expression, "Slide.over", "the size")})


class Session:
    """Windows that end after a gap without rows: `Session.with_gap(lit(10).minutes).on(col("at")).alias("w")`."""

    @classmethod
    def with_gap(cls, gap: Expression) -> GroupWindow:
        """The gap that ends a session."""
        checked(gap, Expression, "Session.with_gap", "the gap")
        return GroupWindow("SESSION", {"GAP": gap})


@dataclass(frozen=True)
class GroupWindowedTable:
    """A table and its window, for `group_by`. Flink: GroupWindowedTable."""

    table: Table
    window: GroupWindow

    def group_by(self, *fields: Expression) -> WindowGroupedTable:
        """Groups of rows of a window with equal values of the other expressions.

        Raises:
            GraphError: None of the expressions is the alias of the window, or the window has no time column.
        """
        where, window = at_call("GroupWindowedTable.group_by"), self.window
        if not window.name or window.time is None:
            raise GraphError(f"{where}: the window needs on(...) and alias(...)")
        named = named_fields("GroupWindowedTable.group_by", fields, self.table.columns)
        keys = [(key, tree) for key, tree in named if not _is_column(tree, window.name)]
        if len(keys) == len(named):
            raise GraphError(f"{where}: the window is missing; add col('{window.name}')")
        spans = {name: span.tree for name, span in window.spans.items()}
        windows = windows_of(window.kind, spans, window.time.tree, self.table, where)
        return WindowGroupedTable(windows.timed(self.table), windows, window.name, keys)


def _is_column(tree: Any, name: str) -> bool:
    return isinstance(tree, sqlglot().exp.Column) and tree.name == name


@dataclass(frozen=True)
class WindowGroupedTable:
    """Groups of rows of a window, which `select` turns into a row each. Flink: WindowGroupedTable."""

    table: Table
    windows: Windows
    name: str
    keys: Sequence[tuple[str, Any]]

    def select(self, *fields: Expression) -> Table:
        """A column for each expression of keys, aggregates, and `start`, `end`, `rowtime` and `proctime` of the window.

        Raises:
            GraphError: An expression has a column that is not a key, or an aggregate within another.
            UnsupportedFeatureError: An aggregate is not supported.
        """
        call = "WindowGroupedTable.select"
        aggregates = Aggregates(at_call(call))

        def replaced(tree: Any) -> Any:
            name = self._property(tree)
            if name is None:
                return aggregates.column_of(tree)
            return Expression.of_column(name).alias(aggregates.name_of(name)).tree

        trees = [checked(each, Expression, call, "the column").tree for each in fields]
        results = [Expression(tree.transform(replaced)) for tree in trees]
        rows = self.table.calculated(call, [*self.keys, *aggregates.arguments])
        grouped = aggregated(rows, self.windows, len(self.keys), aggregates)
        return grouped.calculated(call, named_fields(call, results, grouped.columns))

    def _property(self, tree: Any) -> str | None:
        """The column that `col("w").start` and the like name."""
        if not isinstance(tree, sqlglot().exp.Anonymous) or len(tree.expressions) != 1:
            return None
        is_of_window = _is_column(tree.expressions[0], self.name)
        return PROPERTIES.get(tree.name.upper().rpartition("_")[2]) if is_of_window else None


for _name in ("aggregate", "flat_aggregate"):
    setattr(WindowGroupedTable, _name, refuses(f"WindowGroupedTable.{_name}", "use select()"))
