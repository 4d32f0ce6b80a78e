"""Windows in SQL: table functions in FROM, and GROUP BY over windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.compiler.table.expression import Expression
from opchain.compiler.table.expressions import (
    Column,
    WindowEndColumn,
    WindowStartColumn,
    WindowTimeColumn,
    sqlglot,
)
from opchain.compiler.table.window_syntax import WINDOWS
from opchain.compiler.table.windows import (
    END,
    PROPERTIES,
    START,
    TIME,
    WindowedRows,
    Windows,
    aggregated,
    windows_of,
)
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.windows.table_windows import WindowsOfRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.compiler.table.aggregates import Aggregates
    from opchain.compiler.table.table import Table


def window_call(source: Any) -> Any:
    """The call of a window's table function in FROM, as in `TABLE(TUMBLE(TABLE t, ...))`; None for other sources."""
    exp = sqlglot().exp
    call = source.this if isinstance(source, exp.Table) else None
    if isinstance(call, exp.Anonymous) and call.name.upper() == "TABLE" and call.expressions:
        call = call.expressions[0]
    return call if is_window(call) else None


def is_window(tree: Any) -> bool:
    """Whether a tree is a call such as `TUMBLE(at, INTERVAL '1' MINUTE)`."""
    return isinstance(tree, sqlglot().exp.Anonymous) and tree.name.upper() in WINDOWS


def arguments_of(call: Any, names: Sequence[str]) -> dict[str, Any]:
    """The arguments of a call of TUMBLE and the like by name: first those with these names, then the intervals."""
    exp = sqlglot().exp
    known = (*names, *WINDOWS[call.name.upper()])
    found = {}
    for place, each in enumerate(call.expressions):
        if isinstance(each, exp.Kwarg):
            found[each.this.name.upper()] = each.expression
        elif place < len(known):
            found[known[place]] = each
        else:
            raise GraphError(f"{call.sql(dialect='flink')}: there are too many arguments")
    for name in names:
        if name not in found:
            raise GraphError(f"{call.sql(dialect='flink')}: the argument {name} is missing")
    return found


def property_of(tree: Any, call: Any) -> str | None:
    """The column of a window that `TUMBLE_START(at, ...)` and the like name; None for other trees.

    Raises:
        GraphError: The arguments are not those of the window in GROUP BY.
    """
    if not isinstance(tree, sqlglot().exp.Anonymous):
        return None
    kind, _, name = tree.name.upper().rpartition("_")
    if kind not in WINDOWS or name not in PROPERTIES:
        return None
    if kind != call.name.upper() or tree.expressions != call.expressions:
        raise GraphError(
            f"{tree.sql(dialect='flink')} has other arguments than {call.sql(dialect='flink')} in GROUP BY; write "
            "the same ones"
        )
    return PROPERTIES[name]


@dataclass(frozen=True)
class WindowGrouping:
    """GROUP BY over windows.

    Attributes:
        table: The table whose rows are aggregated.
        columns: Its columns as the query names them.
        keys: The trees of the keys without the windows.
        given: The names and trees of the columns that an aggregation needs besides the arguments of aggregates.
        properties: The column of the window that a tree names, or None.
        windows: The windows; None if they are columns of the rows.
    """

    table: Table
    columns: tuple[Column, ...]
    keys: Sequence[Any]
    given: Sequence[tuple[str, Any]]
    properties: Callable[[Any], str | None]
    windows: Windows | None

    @staticmethod
    def of(
        table: Table,
        columns: tuple[Column, ...],
        expressions: Sequence[Any],
        others: Sequence[Any],
        where: str,
    ) -> WindowGrouping | None:
        """The grouping by some expressions; None if they have no window.

        Args:
            table: The table in FROM.
            columns: Its columns as the query names them.
            expressions: The trees of GROUP BY.
            others: The trees of WHERE and of the aggregates, which are computed for each row, too.
            where: The part of the program, for errors.

        Raises:
            GraphError: The arguments of the window are wrong.
            UnsupportedFeatureError: Each row needs its window, and the window is in processing time.
        """
        calls = list(filter(is_window, expressions))
        if calls:
            call, keys = calls[0], [each for each in expressions if each is not calls[0]]
            spans = arguments_of(call, ["TIMECOL"])
            named = replace(table, columns=columns)
            windows = windows_of(call.name.upper(), spans, spans.pop("TIMECOL"), named, where)
            given = _numbered(keys)
            found = partial(property_of, call=call)
            return WindowGrouping(windows.timed(named), columns, keys, given, found, windows)
        of_window = _window_columns(table, columns)
        keys = [each for each in expressions if each.name not in of_window]
        grouped = {of_window.get(each.name) for each in expressions}
        if not {START, END} <= grouped:
            return None

        def column_of(tree: Any) -> str | None:
            return of_window.get(tree.name) if isinstance(tree, sqlglot().exp.Column) else None

        given, made_by = _numbered(keys), table.made_by
        if isinstance(made_by, WindowedRows):
            columns_read = (tree.find_all(sqlglot().exp.Column) for tree in (*keys, *others))
            for_each_row = {each.name for found in columns_read for each in found}
            if made_by.can_group_by(keys) and for_each_row.isdisjoint(of_window):
                own = columns[: len(made_by.below.columns)]
                return WindowGrouping(made_by.below, own, keys, given, column_of, made_by.windows)
            if not made_by.windows.assigner.is_event_time():
                raise UnsupportedFeatureError(
                    f"{where}: WHERE, keys and aggregates must not use {', '.join(of_window)} of windows in processing "
                    "time, and sessions must be grouped by their PARTITION BY columns; use an event-time column"
                )
        given += [(of, Expression.of_column(name).tree) for name, of in of_window.items()]
        return WindowGrouping(table, columns, keys, given, column_of, None)

    def replaced(self, aggregates: Aggregates, tree: Any) -> Any:
        """The column of a key, an aggregate or a time of the window. Other trees are returned as they are.

        Raises:
            GraphError: It is another column.
        """
        name = self.properties(tree)
        if name is not None:
            return Expression.of_column(name).tree
        if tree in self.keys:
            return Expression.of_column(self.given[self.keys.index(tree)][0]).tree
        if isinstance(tree, sqlglot().exp.Column):
            raise GraphError(
                f"the column {tree.sql(dialect='flink')} is neither in GROUP BY nor in an aggregate; add it to GROUP BY"
            )
        return aggregates.column_of(tree)

    def aggregated(self, rows: Table, aggregates: Aggregates) -> Table:
        """A row for each window and key."""
        windows = _windows_of_rows(rows.columns) if self.windows is None else self.windows
        return aggregated(rows, windows, len(self.keys), aggregates)


def _numbered(keys: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(f"key${place}", each) for place, each in enumerate(keys)]


def _window_columns(table: Table, columns: Sequence[Column]) -> dict[str, str]:
    """The names of the columns that have the window of a row, with the columns that an aggregation gives it."""
    if isinstance(table.made_by, WindowedRows):
        names = [each.name for each in columns[-3:]]
        return dict(zip(names, (START, END, TIME), strict=True))
    kinds = {WindowStartColumn: START, WindowEndColumn: END, WindowTimeColumn: TIME}
    return {each.name: kinds[type(each)] for each in columns if type(each) in kinds}


def _windows_of_rows(columns: Sequence[Column]) -> Windows:
    """The windows that rows have in the columns START and END, which an earlier query gave them."""
    names = [each.name for each in columns]
    start, end = names.index(START), names.index(END)
    return Windows(
        WindowsOfRows(start, end), columns[names.index(TIME) if TIME in names else start]
    )
