"""A table: columns, the stream of its rows, and the expressions of the Table API that give another table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.argument_checks import at_call, checked, refused, refuses
from opchain.compiler.dsl.captured_functions import NotCapturable
from opchain.compiler.table.aggregates import has_aggregates
from opchain.compiler.table.calculation import Calculation
from opchain.compiler.table.connectors.row_types import row_type
from opchain.compiler.table.data_types import DataTypes, RowField, RowType
from opchain.compiler.table.expression import Expression
from opchain.compiler.table.expressions import STRING, Column, Compiler, Typed, by_position
from opchain.compiler.table.fields import check_names, named_fields
from opchain.compiler.table.group_windows import GroupWindow, GroupWindowedTable
from opchain.compiler.table.queries import projection
from opchain.compiler.table.relations import (
    GroupedTable,
    InnerJoin,
    Sort,
    combined,
    distinct,
    joined,
    sort,
)
from opchain.compiler.table.table_descriptor import Schema, TableSchema
from opchain.compiler.table.table_result import schema_of
from opchain.compiler.table.user_functions import (
    UserDefinedScalarFunctionWrapper,
    UserDefinedTableFunctionWrapper,
    table_call,
    with_functions,
)
from opchain.runtime.errors import GraphError, imported
from opchain.runtime.functions.user_defined_functions import Unnesting
from opchain.runtime.types.row import RowKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.explain import ExplainDetail
    from opchain.compiler.table.stream_table_environment import StreamTableEnvironment
    from opchain.compiler.table.table_descriptor import TableDescriptor
    from opchain.compiler.table.table_result import TableResult
    from opchain.compiler.table.windows import WindowedRows


_TEXTS = ("CHAR", "VARCHAR", "STRING")


@dataclass(frozen=True)
class Table(NotCapturable):
    """A described table, a view or a query. `StreamTableEnvironment.to_data_stream` returns the stream of its rows.

    Attributes:
        path: Its name.
        descriptor: The descriptor of a described table; None for views and queries.
        columns: All columns.
        stream: Creates the stream of the rows.
        definition: The statement CREATE VIEW of a view; None if it was not created by a statement.
        made_by: The join or sort whose result it is, which `filter`, `offset` and `fetch` extend. Or the windows that its
            rows are in.
    """

    path: str
    descriptor: TableDescriptor | None
    columns: tuple[Column, ...]
    stream: Callable[[], DataStream[Any]] = field(compare=False, repr=False)
    environment: StreamTableEnvironment | None = field(default=None, compare=False, repr=False)
    definition: str | None = field(default=None, compare=False, repr=False)
    made_by: InnerJoin | Sort | WindowedRows | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """A name of the table for SQL: `f"SELECT a FROM {table}"`."""
        assert self.environment is not None
        return self.environment.name_of(self)

    def __getattr__(self, name: str) -> Expression:
        """A column: `table.price > 10`."""
        if name.startswith("_") or name not in by_position(self.columns):
            raise AttributeError(f"a Table has no attribute {name!r}")
        return Expression.of_column(name)

    def rows(self) -> DataStream[Any]:
        """The stream of the rows. An error of a described table names the table."""
        if self.descriptor is None:
            return self.stream()
        assert self.environment is not None
        return self.environment.to_data_stream(self)

    def get_schema(self) -> TableSchema:
        """The names and types of the columns."""
        return schema_of(self.columns)

    def alias(self, field: str, *fields: str) -> Table:
        """The same rows with new names of the first columns. The other columns keep their names.

        Raises:
            GraphError: There are more names than columns, or two columns would have one name.
        """
        given = (field, *fields)
        if len(given) > len(self.columns):
            raise GraphError(
                f"{at_call('Table.alias')} got {len(given)} names, and the table has {len(self.columns)} columns"
            )
        names = (*given, *(each.name for each in self.columns[len(given) :]))
        if len(set(names)) < len(names):
            raise GraphError(
                f"{at_call('Table.alias')}: two columns would have one name: {', '.join(names)}"
            )
        columns = tuple(
            each._replace(name=name) for name, each in zip(names, self.columns, strict=True)
        )
        row = projection(columns, list(by_position(columns).values()))
        return self._derived(columns, lambda: self.rows().map(row, row_type(columns)))

    def select(self, *fields: Expression) -> Table:
        """A column for each expression; `col("*")` is every column. A computed column without alias is _c0, _c1, ...

        Raises:
            GraphError: Two columns have the same name, or an expression does not fit the columns.
        """
        if any(isinstance(each, Expression) and has_aggregates(each.tree) for each in fields):
            return GroupedTable(self, ()).select(*fields)
        call = "Table.select"
        return self.calculated(call, named_fields(call, fields, self.columns))

    def filter(self, predicate: Expression) -> Table:
        """The rows for which the predicate is true.

        Raises:
            GraphError: The predicate is no BOOLEAN.
        """
        call = "Table.filter"
        condition = checked(predicate, Expression, call, "the predicate").tree
        if isinstance(self.made_by, InnerJoin):
            return self.made_by.where(condition, call)
        return self.filtered(call, condition)

    def filtered(self, call: str, condition: Any) -> Table:
        """The rows for which the condition, a tree, is true.

        Raises:
            GraphError: It is no BOOLEAN.
        """
        calculation = _calculation_of(call, self.columns, self._functions(), None, condition)
        return self._derived(calculation.columns, lambda: calculation.applied(self.rows()))

    def where(self, predicate: Expression) -> Table:
        """As `filter`."""
        return self.filter(predicate)

    def add_columns(self, *fields: Expression) -> Table:
        """The columns, and one for each expression.

        Raises:
            GraphError: There is a column of this name.
        """
        call = "Table.add_columns"
        added = named_fields(call, fields, self.columns, len(self.columns))
        return self.calculated(call, [*self._own_fields(), *added])

    def add_or_replace_columns(self, *fields: Expression) -> Table:
        """The columns, and one for each expression. It replaces the column of its name."""
        call = "Table.add_or_replace_columns"
        added = named_fields(call, fields, self.columns, len(self.columns))
        check_names(call, added)
        return self.calculated(call, list({**dict(self._own_fields()), **dict(added)}.items()))

    def rename_columns(self, *fields: Expression) -> Table:
        """The columns with other names: `table.rename_columns(col("a").alias("b"))`.

        Raises:
            GraphError: An expression is no column with an alias.
        """
        call = "Table.rename_columns"
        names = {}
        for each in fields:
            tree = checked(each, Expression, call, "the column").tree
            if type(tree).__name__ != "Alias" or type(tree.this).__name__ != "Column":
                raise GraphError(f"{at_call(call)} takes col('old').alias('new'), and got {each}")
            names[self._existing(tree.this.name, call)] = tree.alias
        renamed = [(names.get(name, name), tree) for name, tree in self._own_fields()]
        return self.calculated(call, renamed)

    def drop_columns(self, *fields: Expression) -> Table:
        """The other columns.

        Raises:
            GraphError: There is no such column.
        """
        call = "Table.drop_columns"
        dropped = [name for name, _ in named_fields(call, fields, self.columns)]
        for name in dropped:
            self._existing(name, call)
        return self.calculated(call, [one for one in self._own_fields() if one[0] not in dropped])

    def union_all(self, right: Table) -> Table:
        """The rows of both tables. A column has this table's name, and a type that the values of both tables fit into."""
        checked(right, Table, "Table.union_all", "the other table")
        assert self.environment is not None
        return self.environment.planner.union(self, right, at_call("Table.union_all"))

    def union(self, right: Table) -> Table:
        """The rows of both tables, each once. The columns are as in `union_all`."""
        return self._combined("union", right)

    def intersect(self, right: Table) -> Table:
        """The rows that both tables have, each once."""
        return self._combined("intersect", right)

    def intersect_all(self, right: Table) -> Table:
        """The rows that both tables have, as often as both have them."""
        return self._combined("intersect_all", right)

    def minus(self, right: Table) -> Table:
        """The rows that the other table does not have, each once."""
        return self._combined("minus", right)

    def minus_all(self, right: Table) -> Table:
        """The rows, each less often by the number of times that the other table has it."""
        return self._combined("minus_all", right)

    def _combined(self, operation: str, right: Table) -> Table:
        checked(right, Table, f"Table.{operation}", "the other table")
        return combined(self, right, operation, at_call(f"Table.{operation}"))

    def distinct(self) -> Table:
        """Each row once."""
        return distinct(self, at_call("Table.distinct"))

    def group_by(self, *fields: Expression) -> GroupedTable:
        """Groups of rows with equal values of these expressions, for `GroupedTable.select`."""
        return GroupedTable(self, named_fields("Table.group_by", fields, self.columns))

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """The rows in windows: `table.window(Tumble.over(lit(10).minutes).on(col("at")).alias("w"))`, for `group_by`."""
        return GroupWindowedTable(self, checked(window, GroupWindow, "Table.window", "the window"))

    def join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """The pairs of rows for which the predicate is true. Without it, `where` may have the predicate.

        Raises:
            GraphError: Both tables have a column of this name, or no column of one equals one of the other.
        """
        return self._joined("join", right, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """As `join`, and the unmatched rows of this table, with NULL in the other table's columns."""
        return self._joined("left_outer_join", right, join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """As `join`, and the unmatched rows of the other table, with NULL in this table's columns."""
        return self._joined("right_outer_join", right, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """As `join`, and the unmatched rows of both tables, with NULL in the other table's columns."""
        return self._joined("full_outer_join", right, join_predicate)

    def _joined(self, method: str, right: Table, predicate: Expression | None) -> Table:
        call = f"Table.{method}"
        checked(right, Table, call, "the other table")
        if predicate is not None:
            checked(predicate, Expression, call, "the predicate")
        tree = None if predicate is None else predicate.tree
        return joined(self, right, method.removesuffix("join").rstrip("_"), tree, call)

    def order_by(self, *fields: Expression) -> Table:
        """The rows in the order of these expressions, such as `col("a")` or `col("a").desc`. NULL is the greatest value."""
        return sort(self, fields, "Table.order_by")

    def offset(self, offset: int) -> Table:
        """The rows without the first ones. Which rows are first is defined directly after `order_by`.

        Raises:
            GraphError: The number is negative, or there is an offset or a limit already.
        """
        return self._sort().with_offset(offset)

    def fetch(self, fetch: int) -> Table:
        """The first rows. Which rows are first is defined directly after `order_by` or `offset`.

        Raises:
            GraphError: The number is negative, or there is a limit already.
        """
        return self._sort().with_fetch(fetch)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """The first rows after an offset."""
        return self.offset(offset).fetch(fetch)

    def _sort(self) -> Sort:
        return self.made_by if isinstance(self.made_by, Sort) else Sort(self)

    def map(self, func: Expression | UserDefinedScalarFunctionWrapper) -> Table:
        """The fields of the rows that a scalar function returns. A function without arguments gets the whole row.

        Raises:
            GraphError: The function does not return rows.
        """
        call = "Table.map"
        kinds = (Expression, UserDefinedScalarFunctionWrapper)
        checked(func, kinds, call, "the function")
        fields = [("row", func.tree if isinstance(func, Expression) else func.of_row())]
        of_rows = _calculation_of(call, self.columns, self._functions(), fields)
        made = self._derived(of_rows.columns, lambda: of_rows.applied(self.rows()))
        of = of_rows.columns[0].data_type
        if not isinstance(of, RowType):
            raise GraphError(
                f"{at_call(call)} takes a function that returns rows, and its result type is {of}; call select(), or "
                "declare result_type=DataTypes.ROW([...])"
            )
        return made.select(*(made.row.get(each.name).alias(each.name) for each in of.fields))

    def flat_map(self, func: Expression | UserDefinedTableFunctionWrapper) -> Table:
        """The rows that a table function returns. A function without arguments gets the whole row.

        Raises:
            GraphError: It is not a call of a table function.
        """
        call = "Table.flat_map"
        if isinstance(func, Expression) and func.tree.alias_or_name != func.tree.name:
            raise GraphError(
                f"{at_call(call)} takes a call without alias(); call alias() of the result"
            )
        return self._unnested(call, func, [])

    def join_lateral(
        self,
        table_function_call: Expression | UserDefinedTableFunctionWrapper,
        join_predicate: Expression | None = None,
    ) -> Table:
        """Each row with each row that a table function returns for it: `f(col("a")).alias("b", "c")`.

        Raises:
            GraphError: It is not a call of a table function, or two columns would have one name.
        """
        return self._lateral("join_lateral", table_function_call, join_predicate)

    def left_outer_join_lateral(
        self,
        table_function_call: Expression | UserDefinedTableFunctionWrapper,
        join_predicate: Expression | None = None,
    ) -> Table:
        """As `join_lateral`, and the rows for which the function returns none, with NULL in its columns.

        Raises:
            GraphError: It is not a call of a table function, or two columns would have one name.
        """
        return self._lateral("left_outer_join_lateral", table_function_call, join_predicate)

    def _lateral(self, method: str, func: Any, predicate: Expression | None) -> Table:
        call = f"Table.{method}"
        if predicate is not None and str(predicate) != "TRUE":
            raise refused(f"{call} with a predicate", "call where() of the result")
        keeps_all = method.startswith("left")
        return self._unnested(call, func, self._own_fields(), keeps_all=keeps_all)

    def _unnested(
        self, call: str, func: Any, kept: list[tuple[str, Any]], *, keeps_all: bool = False
    ) -> Table:
        checked(func, (Expression, UserDefinedTableFunctionWrapper), call, "the function")
        tree, function, names = table_call(func, self._functions(), at_call(call))
        calculation = _calculation_of(
            call, self.columns, self._functions(), [*kept, ("rows", tree)]
        )
        added = [
            Column(name, each.data_type.nullable() if keeps_all else each.data_type)
            for name, each in zip(
                names or [each.name for each in function.fields], function.fields, strict=True
            )
        ]
        columns = (*self.columns[: len(kept)], *added)
        check_names(call, [(each.name, None) for each in columns])
        unnesting = Unnesting([each.name for each in columns], len(kept), keeps_all=keeps_all)
        return self._derived(
            columns,
            lambda: (
                calculation.applied(self.rows())
                .flat_map(unnesting, row_type(columns))
                .name(f"rows of {function.name}")
            ),
        )

    def _functions(self) -> Mapping[str, UserDefinedScalarFunctionWrapper]:
        assert self.environment is not None
        return self.environment.functions

    def _own_fields(self) -> list[tuple[str, Any]]:
        return [(name, Expression.of_column(name).tree) for name, _ in self.columns]

    def _existing(self, name: str, call: str) -> str:
        if name not in by_position(self.columns):
            known = ", ".join(each.name for each in self.columns)
            raise GraphError(
                f"{at_call(call)}: there is no column '{name}'; the columns are {known}"
            )
        return name

    def calculated(self, call: str, fields: list[tuple[str, Any]]) -> Table:
        """The columns that these trees give."""
        check_names(call, fields)
        calculation = _calculation_of(call, self.columns, self._functions(), fields)
        return self._derived(calculation.columns, lambda: calculation.applied(self.rows()))

    def _derived(self, columns: tuple[Column, ...], stream: Callable[[], DataStream[Any]]) -> Table:
        return Table(self.path, None, columns, stream, self.environment)

    def print_schema(self) -> None:
        """Prints the columns and their types."""
        found = None if self.descriptor is None else self.descriptor.schema
        print(Schema(tuple(self.columns)) if found is None else found)  # noqa: T201 - as the name says

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame, when all have come.

        Raises:
            MissingLibraryError: pandas is not installed.
        """
        pandas = imported("pandas", "pandas", "to_pandas()")
        with self.execute().collect() as rows:
            return pandas.DataFrame(list(map(list, rows)), columns=self.get_schema().field_names)

    def execute(self) -> TableResult:
        """Runs the query; the result has its rows."""
        assert self.environment is not None
        return self.environment.result_of(self)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan of the query, as `StreamTableEnvironment.explain_sql`."""
        assert self.environment is not None
        return self.environment.plan_of(self, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan of the query."""
        print(self.explain(*extra_details))  # noqa: T201 - as the name says

    def execute_insert(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TableResult:
        """Writes the rows to a table, as a job."""
        return self.insert_into(table_path_or_descriptor, overwrite).execute()

    def insert_into(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TablePipeline:
        """An INSERT INTO of the rows, which `execute()` or a statement set runs."""
        return TablePipeline(table_path_or_descriptor, self, overwrite)


class _TableCompiler(Compiler):
    """Compiles expressions of the Table API. Beyond SQL, `+` joins texts, `get` takes the number of a field, and `row` has fields f0, f1, ..."""

    _name_of_field = "f{}"

    def _star(self, _: Any) -> Typed:
        """The whole row, which the function of `Table.map` gets."""
        fields = [RowField(name, each.data_type) for name, each in self._columns.items()]
        names = tuple(self._columns)
        values = "".join(f"{each.text}, " for each in self._columns.values())
        return Typed(f"as_row(row, {names!r}, lambda row: ({values}))", DataTypes.ROW(fields))

    def _add(self, tree: Any) -> Typed:
        if self.compile(tree.left).data_type.name in _TEXTS:
            return self._call("concat", STRING, tree.left, tree.right)
        return self._arithmetic(tree, "add")

    def _dot(self, tree: Any) -> Typed:
        key, row = tree.expression, self.compile(tree.this)
        if type(key).__name__ == "Literal" and isinstance(row.data_type, RowType):
            fields = row.data_type.fields
            if int(key.this) < len(fields):
                return self._field(row, fields[int(key.this)].name)
        return self._field(row, key.name)


def _calculation_of(
    call: str,
    columns: Sequence[Column],
    functions: Mapping[str, UserDefinedScalarFunctionWrapper],
    fields: Sequence[tuple[str, Any]] | None,
    condition: Any = None,
) -> Calculation:
    """The calculation of a call such as `Table.select`, with the user's functions by name."""
    where = at_call(call)
    if fields is not None:
        fields = [(name, with_functions(tree.copy(), functions)) for name, tree in fields]
    if condition is not None:
        condition = with_functions(condition.copy(), functions)
    return Calculation(
        columns,
        lambda _, calls: _TableCompiler(by_position(columns), (), where, calls),
        fields,
        condition,
    )


@dataclass(frozen=True)
class TablePipeline:
    """A table, and the table that its rows are written to. Flink: TablePipeline."""

    target: str | TableDescriptor
    table: Table
    overwrite: bool = False

    def execute(self) -> TableResult:
        """Writes the rows, as a job."""
        assert self.table.environment is not None
        return self.table.environment.create_statement_set().add(self).execute()

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan of the INSERT INTO, as `StreamTableEnvironment.explain_sql`."""
        assert self.table.environment is not None
        return self.table.environment.create_statement_set().add(self).explain(*extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan of the INSERT INTO."""
        print(self.explain(*extra_details))  # noqa: T201 - as the name says


@dataclass(frozen=True)
class ChangelogMode:
    """The kinds of changes that a stream may have. Tables only append, so all modes mean the same here."""

    kinds: tuple[RowKind, ...]

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Only inserts."""
        return ChangelogMode((RowKind.INSERT,))

    @staticmethod
    def upsert(key_only_deletes: bool = True) -> ChangelogMode:  # noqa: ARG004 - PyFlink's name
        """Inserts, updates without the row before, and deletes."""
        return ChangelogMode((RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE))

    @staticmethod
    def all() -> ChangelogMode:
        """Every kind."""
        return ChangelogMode(tuple(RowKind))


for _name in (
    *("over_window", "aggregate", "flat_aggregate"),
    *("get_resolved_schema", "to_changelog", "from_changelog"),
):
    setattr(
        Table,
        _name,
        refuses(
            f"Table.{_name}",
            "write the query as SQL with sql_query(), which may group, join and sort bounded tables, or convert it with "
            "to_data_stream()",
        ),
    )
