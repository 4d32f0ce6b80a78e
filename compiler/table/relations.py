"""Groups, joins, sets and orders of tables. They become trees of SQL queries, which Spark SQL runs.

Spark only gets columns: opchain's operators compute the expressions before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.dsl.argument_checks import at_call, checked, refuses
from opchain.compiler.table.aggregates import IN_SPARK, Aggregates
from opchain.compiler.table.expression import Expression
from opchain.compiler.table.expressions import Column, are_comparable, sqlglot
from opchain.compiler.table.fields import check_names, named_fields
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.table.planner import Planner
    from opchain.compiler.table.table import Table

_INSTEAD = (
    "write the query as SQL with sql_query(), or use the DataStream API with to_data_stream()"
)


def _planner(table: Table) -> Planner:
    assert table.environment is not None
    return table.environment.planner


def _column(name: str) -> Any:
    return Expression.of_column(name).tree


def _rows_of(name: str, *columns: Any) -> Any:
    """SELECT of columns, by default all."""
    return sqlglot().exp.select(*(columns or "*")).from_(name)


class GroupedTable(NamedTuple):
    """Groups of rows, which `select` turns into a row each. Flink: GroupedTable.

    Attributes:
        table: The table of the rows.
        keys: The names and trees of the keys.
    """

    table: Table
    keys: Sequence[tuple[str, Any]]

    def select(self, *fields: Expression) -> Table:
        """A column for each expression of keys and aggregates. An aggregate without alias is EXPR$0, EXPR$1, ...

        Raises:
            GraphError: An expression has a column that is not a key, or an aggregate within another.
            UnsupportedFeatureError: The table is unbounded, or the aggregate is not supported.
        """
        call = "GroupedTable.select" if self.keys else "Table.select"
        aggregates = Aggregates(at_call(call), IN_SPARK)
        trees = [checked(each, Expression, call, "the column").tree for each in fields]
        results = [Expression(tree.transform(aggregates.column_of)) for tree in trees]
        grouped = self._aggregated(aggregates, call)
        return grouped.calculated(call, named_fields(call, results, grouped.columns))

    def _aggregated(self, aggregates: Aggregates, call: str) -> Table:
        """A row for each group: the keys, and the results of the aggregates."""
        exp, keys = sqlglot().exp, [name for name, _ in self.keys]
        given = [*self.keys, *aggregates.arguments]
        rows = self.table.calculated(call, given) if given else self.table
        results = [exp.alias_(tree, name, quoted=True) for name, tree in aggregates.made]
        if not (keys or results):
            results = [exp.Count(this=exp.Star())]
        query = _rows_of("rows", *map(_column, keys), *results)
        query = query.group_by(*map(_column, keys)) if keys else query
        found = _planner(self.table).by_spark(query, {"rows": rows}, at_call(call))
        of_keys = (Column(*each) for each in rows.columns[: len(keys)])
        return replace(found, columns=(*of_keys, *found.columns[len(keys) :]))


for _name in ("aggregate", "flat_aggregate"):
    setattr(GroupedTable, _name, refuses(f"GroupedTable.{_name}", _INSTEAD))


@dataclass(frozen=True)
class InnerJoin:
    """The pairs of rows of two tables that meet a condition."""

    left: Table
    right: Table
    condition: Any

    def where(self, condition: Any, call: str) -> Table:
        """The pairs that also meet this condition."""
        whole = sqlglot().exp.and_(self.condition, condition)
        return replace(self, condition=whole).table(call)

    def table(self, call: str) -> Table:
        """The pairs. Spark compares columns of the tables, and an operator evaluates the whole condition."""
        equal = list(_equal_columns(self.condition, self.left, self.right))
        pairs = _pairs(self.left, self.right, "INNER" if equal else "CROSS", equal, call)
        return replace(pairs.filtered(call, self.condition), made_by=self)


def joined(left: Table, right: Table, side: str, condition: Any, call: str) -> Table:
    """The result of a join. `side` is left_outer, right_outer, full_outer, or empty for an inner join.

    Raises:
        GraphError: Both tables have a column of this name, or no column of one equals one of the other.
    """
    check_names(call, [(each.name, None) for each in (*left.columns, *right.columns)])
    condition = sqlglot().exp.true() if condition is None else condition
    if type(condition).__name__ != "Boolean" and not any(_equal_columns(condition, left, right)):
        raise GraphError(
            f"{at_call(call)}: {condition.sql(dialect='flink')} compares no column of one table with a column of the "
            "other one; add such an equality, as in col('a') == col('b')"
        )
    if not side:
        return InnerJoin(left, right, condition).table(call)
    pairs = _pairs(left, right, side.replace("_", " "), [condition], call)
    pairs.filtered(call, condition)  # checks its types
    return pairs


def _pairs(left: Table, right: Table, kind: str, conditions: Sequence[Any], call: str) -> Table:
    condition = sqlglot().exp.and_(*conditions) if conditions else None
    query = _rows_of("left_rows").join("right_rows", on=condition, join_type=kind)
    tables, is_outer = {"left_rows": left, "right_rows": right}, "outer" in kind
    columns = [
        each._replace(data_type=each.data_type.nullable()) if is_outer else each
        for each in (*left.columns, *right.columns)
    ]
    return _planner(left).by_spark(query, tables, at_call(call), columns)


def _equal_columns(condition: Any, left: Table, right: Table) -> Iterator[Any]:
    """The parts of a condition by which a column of one table equals a column of the other."""
    exp = sqlglot().exp
    tree = condition.unnest()
    if isinstance(tree, exp.And):
        yield from _equal_columns(tree.left, left, right)
        yield from _equal_columns(tree.right, left, right)
    elif isinstance(tree, exp.EQ) and all(
        isinstance(each, exp.Column) for each in (tree.left, tree.right)
    ):
        sides = [dict(left.columns), dict(right.columns)]
        for one, other in (sides, sides[::-1]):
            of, of_other = one.get(tree.left.name), other.get(tree.right.name)
            if of is not None and of_other is not None and are_comparable(of, of_other):
                yield tree


_SETS = {"union": "Union", "intersect": "Intersect", "minus": "Except"}


def combined(left: Table, right: Table, operation: str, call: str) -> Table:
    """The result of union, intersect, intersect_all, minus or minus_all.

    Raises:
        GraphError: The tables differ in the number of columns, or in the kind of a column's type.
    """
    name = operation.removesuffix("_all")
    left, right = _planner(left).of_one_type(left, right, call)
    query = getattr(sqlglot().exp, _SETS[name])(
        this=_rows_of("left_rows"),
        expression=_rows_of("right_rows"),
        distinct=name == operation,
    )
    tables = {"left_rows": left, "right_rows": right}
    return _planner(left).by_spark(query, tables, call, left.columns)


def distinct(table: Table, call: str) -> Table:
    """Each row once."""
    query = _rows_of("rows").distinct()
    return _planner(table).by_spark(query, {"rows": table}, call, table.columns)


@dataclass(frozen=True)
class Sort:
    """Rows in an order, without the first ones, and a number of them. Flink: SortQueryOperation."""

    below: Table
    fields: Sequence[Any] = ()
    offset: int | None = None
    fetch: int | None = None

    def with_offset(self, offset: int) -> Table:
        """The result with an offset."""
        call = "Table.offset"
        if (self.offset, self.fetch) != (None, None):
            raise GraphError(f"{at_call(call)}: the table has an offset or a limit already")
        return replace(self, offset=_count(offset, call)).table(call)

    def with_fetch(self, fetch: int) -> Table:
        """The result with a limit."""
        call = "Table.fetch"
        if self.fetch is not None:
            raise GraphError(f"{at_call(call)}: the table has a limit already")
        return replace(self, fetch=_count(fetch, call)).table(call)

    def table(self, call: str) -> Table:
        """The result."""
        exp, names = sqlglot().exp, [each.name for each in self.below.columns]
        fields = [(name, _column(name)) for name in names]
        orders = []
        for number, tree in enumerate(self.fields):
            order = tree.copy() if isinstance(tree, exp.Ordered) else _ascending(tree)
            fields.append((f"order${number}", order.this))
            orders.append(exp.Ordered(**{**order.args, "this": _column(f"order${number}")}))
        rows = self.below.calculated(call, fields)
        query = _rows_of("rows", *map(_column, names))
        query = query.order_by(*orders) if orders else query
        if self.fetch is not None:
            query = query.limit(self.fetch)
        if self.offset:
            query = query.offset(self.offset)
        tables = {"rows": rows}
        made = _planner(self.below).by_spark(query, tables, at_call(call), self.below.columns)
        return replace(made, made_by=self)


def sort(table: Table, fields: Sequence[Expression], call: str) -> Table:
    """The rows in an order."""
    trees = [checked(each, Expression, call, "the expression").tree for each in fields]
    return Sort(table, trees).table(call)


def _ascending(tree: Any) -> Any:
    return Expression(tree.copy()).asc.tree


def _count(number: int, call: str) -> int:
    if checked(number, int, call, "the number") < 0:
        raise GraphError(f"{at_call(call)} got {number}; it takes a number of at least 0")
    return number
