"""A calculation: a row of expressions for each row that meets a condition. SQL and the Table API share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.table.connectors.row_types import row_type
from opchain.compiler.table.expressions import column_of
from opchain.compiler.table.queries import projection
from opchain.compiler.table.user_functions import UserCalls
from opchain.runtime.functions.sql import RowPredicate
from opchain.runtime.functions.user_defined_functions import (
    PredicateWithCalls,
    ProjectionWithCalls,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.expressions import Column, Compiler, Typed


def changes_rows(
    given: Sequence[Column], columns: Sequence[Column], values: Sequence[Typed]
) -> bool:
    """Whether rows of some columns differ from the rows of these values: in a name, a value or the number of columns."""
    plain = [(each.name, f"row[{place}]") for place, each in enumerate(given)]
    return [(each.name, of.text) for each, of in zip(columns, values, strict=True)] != plain


def projected(
    rows: DataStream[Any],
    given: Sequence[Column],
    columns: Sequence[Column],
    values: Sequence[Typed],
) -> DataStream[Any]:
    """The rows of these values: the stream itself if it has them.

    Args:
        rows: The stream.
        given: The columns of its rows.
        columns: The columns of the results.
        values: The value of each.
    """
    if not changes_rows(given, columns, values):
        return rows
    return rows.map(projection(columns, values), row_type(columns))


class Calculation:
    """Flink: Calc.

    Args:
        given: The columns of the rows.
        compiler_of: Creates the compiler of SELECT or WHERE, which adds to the calls of functions.
        fields: The names and trees of the results; None for the rows as they are.
        condition: The tree of the condition; None if all rows meet it.
    """

    def __init__(
        self,
        given: Sequence[Column],
        compiler_of: Callable[[str, UserCalls], Compiler],
        fields: Sequence[tuple[str, Any]] | None,
        condition: Any = None,
    ) -> None:
        self._condition = condition
        self._tested, self._selected = UserCalls(len(given)), UserCalls(len(given))
        if condition is not None:
            self._test = compiler_of("WHERE", self._tested).condition(condition)
        self.columns = tuple(given)
        self._values = None
        if fields is not None:
            compiler = compiler_of("SELECT", self._selected)
            values = [compiler.compile(tree) for _, tree in fields]
            self.columns = tuple(
                column_of(name, value, given)
                for (name, _), value in zip(fields, values, strict=True)
            )
            if changes_rows(given, self.columns, values):
                self._values = values

    def applied(self, rows: DataStream[Any]) -> DataStream[Any]:
        """The results for a stream of rows."""
        if self._condition is not None:
            shown = self._condition.sql(dialect="flink")
            test: Any = RowPredicate(self._test.text, shown)
            if self._tested.made:
                test = PredicateWithCalls(self._tested.made, test)
            rows = rows.filter(test).name(f"where {shown}")
        if self._values is None:
            return rows
        name = f"select {', '.join(each.name for each in self.columns)}"
        row: Any = projection(self.columns, self._values)
        if self._selected.made:
            row = ProjectionWithCalls(self._selected.made, row)
        return rows.map(row, row_type(self.columns)).name(name)
