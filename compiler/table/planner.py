"""How a query is computed: by streams if it has only scalar expressions, WHERE and windows, else by Spark SQL."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from opchain.compiler.dsl.stream_dataframe import PlannedDataFrame, never_ends
from opchain.compiler.graph.transformation import user_call_site
from opchain.compiler.settings.settings_reader import read_settings
from opchain.compiler.table.aggregates import Aggregates, is_aggregate
from opchain.compiler.table.calculation import Calculation, projected
from opchain.compiler.table.connectors.row_types import row_type
from opchain.compiler.table.data_types import DataTypes, spark_schema, spark_types, type_of_spark
from opchain.compiler.table.expression import Expression
from opchain.compiler.table.expressions import (
    Column,
    Compiler,
    Typed,
    by_position,
    common_type,
    fitted,
    parsed,
    sqlglot,
)
from opchain.compiler.table.queries import (
    is_grouped,
    is_scalar,
    lateral_call,
    named_tables,
    names_of_columns,
    path_of,
    projection,
    renamed,
    selected,
    source_of,
    unbounded_part,
    unqualified,
    values_of,
    without_ctes,
)
from opchain.compiler.table.spark_sql import for_spark
from opchain.compiler.table.table import Table
from opchain.compiler.table.user_functions import function_of, with_functions
from opchain.compiler.table.window_grouping import (
    WindowGrouping,
    arguments_of,
    is_window,
    window_call,
)
from opchain.compiler.table.windows import WindowedRows, windows_of
from opchain.runtime.errors import GraphError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.table.data_types import DataType
    from opchain.compiler.table.stream_table_environment import StreamTableEnvironment


class Planner:
    """Turns parsed queries into tables. Flink: Planner."""

    def __init__(self, tables: StreamTableEnvironment) -> None:
        self._tables = tables

    def table_of(self, tree: Any) -> Table:
        """The result of a parsed query."""
        tables = self._tables_of(with_functions(tree, self._tables.functions))
        found = self._by_streams(without_ctes(tree))
        if found is None:
            return self.by_spark(tree, tables, _the_query())
        return replace(found, path=f"query${next(self._tables.numbers)}")

    def _by_streams(self, tree: Any) -> Table | None:
        """The result of a query that streams can compute; None if it needs Spark SQL."""
        kind = type(tree).__name__
        if kind == "Subquery" and tree.this is not None:
            return self._by_streams(tree.this)
        if kind == "Values":
            return self._constant(values_of(tree))
        if kind == "Union" and not tree.args.get("distinct") and not tree.args.get("order"):
            left, right = self._by_streams(tree.left), self._by_streams(tree.right)
            return None if left is None or right is None else self.union(left, right, _the_query())
        joins, scalar = tree.args.get("joins") or [], tree.copy()
        if all(lateral_call(each, self._tables.functions) for each in joins):
            scalar.set("joins", None)
        if is_grouped(scalar) and source_of(scalar) is not None:
            return self._grouped(scalar, joins)
        return self._select(scalar, joins) if is_scalar(scalar) else None

    def _select(self, tree: Any, joins: Sequence[Any]) -> Table | None:
        """The result of a scalar SELECT with these joins of table functions.

        None if the query in FROM needs Spark SQL.
        """
        source = source_of(tree)
        if source is None:
            if any(map(function_of, tree.walk())):
                return self._of_calls(tree)
            compiler = Compiler({}, (), "SELECT")
            row = [(name, compiler.compile(each)) for name, each in selected(tree, ())]
            return self._constant([row])
        found = self._from(source, joins)
        if found is None:
            return None
        below, columns, names = found
        where = tree.args.get("where")
        fields = selected(tree, [each.name for each in columns])
        condition = None if where is None else where.this
        return self._computed(below, columns, fields, condition, names)

    def _from(
        self, source: Any, joins: Sequence[Any]
    ) -> tuple[Table, tuple[Column, ...], list[str]] | None:
        """The table of FROM with its joins, its columns as the query names them, and the names of its sources."""
        below = self._source(source)
        if below is None:
            return None
        columns = renamed(source, below.columns)
        for join in joins:
            if columns != below.columns:
                below = below.alias(*(each.name for each in columns))
            below = self._lateral(below, join)
            columns = below.columns
        return below, columns, [each.alias_or_name for each in (source, *(j.this for j in joins))]

    def _source(self, source: Any) -> Table | None:
        """The table or query in FROM; None if it needs Spark SQL."""
        call = window_call(source)
        if call is not None:
            return self._windowed(call)
        if isinstance(source, sqlglot().exp.Table):
            return self._tables.from_path(path_of(source))
        return self._by_streams(source)

    def _windowed(self, call: Any) -> Table | None:
        """The rows of `TUMBLE(TABLE t, DESCRIPTOR(at), ...)` with their windows."""
        exp, spans = sqlglot().exp, arguments_of(call, ["DATA", "TIMECOL"])
        data, time, where = spans.pop("DATA"), spans.pop("TIMECOL"), _the_query()
        is_table = type(data).__name__ == "TableArgument"
        below = self._source(data.this if is_table else data)
        if below is None:
            return None
        keys = data.args.get("partition") or [] if is_table else []
        time = time.expressions[0] if isinstance(time, exp.Anonymous) and time.expressions else time
        windows = windows_of(call.name.upper(), spans, time, below, where, keys)
        return WindowedRows(windows.timed(below), windows).table()

    def _grouped(self, tree: Any, joins: Sequence[Any]) -> Table | None:
        """The result of a SELECT with GROUP BY over windows; None if it groups by no window."""
        found = self._from(source_of(tree), joins)
        if found is None:
            return None
        below, columns, aliases = found
        keys = [unqualified(each, aliases) for each in tree.args["group"].expressions]
        fields = [(name, unqualified(each, aliases)) for name, each in selected(tree, ())]
        clauses = [tree.args.get(each) for each in ("where", "having")]
        where, having = (each and unqualified(each.this, aliases) for each in clauses)
        trees = [*(each for _, each in fields), *([having] if having else [])]
        inside = [each for one in trees for each in one.walk() if is_aggregate(each)]
        others = [*inside, *([where] if where else [])]
        grouping = WindowGrouping.of(below, columns, keys, others, _the_query())
        if grouping is None:
            return None
        aggregates = Aggregates(_the_query())
        replaced = partial(grouping.replaced, aggregates)
        fields = [(name, each.transform(replaced)) for name, each in fields]
        having = having and having.transform(replaced)
        given = [*grouping.given, *aggregates.arguments]
        rows = self._computed(grouping.table, grouping.columns, given, where)
        result = grouping.aggregated(rows, aggregates)
        return self._computed(result, result.columns, fields, having)

    def _computed(
        self,
        below: Table,
        columns: Sequence[Column],
        fields: Sequence[tuple[str, Any]],
        condition: Any,
        aliases: Sequence[str] = (),
    ) -> Table:
        """The result of a calculation over a table, whose columns and aliases the query has named."""
        values = by_position(columns)
        calculation = Calculation(
            below.columns,
            lambda clause, calls: Compiler(values, aliases, clause, calls),
            fields,
            condition,
        )
        return self._calculated(calculation, below)

    def _lateral(self, below: Table, join: Any) -> Table:
        """The result of a join with LATERAL TABLE."""
        call = lateral_call(join, self._tables.functions).copy()
        for column in call.find_all(sqlglot().exp.Column):
            column.set("table", None)
        names = [each.name for each in names_of_columns(join.this)]
        func = Expression(call)
        func = func.alias(*names) if names else func
        if join.side == "LEFT":
            return below.left_outer_join_lateral(func)
        return below.join_lateral(func)

    def _of_calls(self, tree: Any) -> Table:
        """The result of a SELECT without FROM that calls functions of the user, which run in the job."""
        one = self._constant([[("EXPR$0", Typed("0", DataTypes.INT()))]])
        calculation = Calculation(
            one.columns,
            lambda clause, calls: Compiler({}, (), clause, calls),
            selected(tree, ()),
        )
        return self._calculated(calculation, one)

    def _calculated(self, calculation: Calculation, below: Table) -> Table:
        """The result of a calculation over the rows of another table."""
        return Table(
            "", None, calculation.columns, lambda: calculation.applied(below.rows()), self._tables
        )

    def union(self, left: Table, right: Table, call: str) -> Table:
        """The result of UNION ALL. Its columns have types that the values of both queries fit into.

        Raises:
            GraphError: The queries differ in the number of columns, or in the kind of a column's type.
        """
        one, other = self.of_one_type(left, right, f"{call}: UNION ALL")
        return Table(
            "", None, one.columns, lambda: one.stream().union(other.stream()), self._tables
        )

    def of_one_type(self, left: Table, right: Table, where: str) -> tuple[Table, Table]:
        """Both tables with the names of the first one, and with types that the values of both fit into.

        Raises:
            GraphError: They differ in the number of columns, or in the kind of a column's type.
        """
        if len(left.columns) != len(right.columns):
            raise GraphError(
                f"{where}: the first query has {len(left.columns)} columns, and the second one {len(right.columns)}; "
                "select the same number of columns in both"
            )
        columns = tuple(
            (type(one) if type(one) is type(other) else Column)(
                one.name, _type_of_column([one.data_type, other.data_type], where, one.name)
            )
            for one, other in zip(left.columns, right.columns, strict=True)
        )
        one, other = (
            Table(table.path, None, columns, partial(_with_types, table, columns), self._tables)
            for table in (left, right)
        )
        return one, other

    def _constant(self, rows: Sequence[Sequence[tuple[str, Typed]]]) -> Table:
        """The result of VALUES, or of a SELECT without FROM."""
        where = f"{_the_query()}: VALUES"
        first, *others = (len(row) for row in rows)
        for number, found in enumerate(others, 2):
            if found != first:
                raise GraphError(
                    f"{where}: row 1 has {first} columns, and row {number} has {found}; give all rows the same number"
                )
        columns = tuple(
            Column(name, _type_of_values([typed for _, typed in entries], where, name))
            for entries in zip(*rows, strict=True)
            for name in [entries[0][0]]
        )
        records = [
            projection(columns, _cast_to(columns, [typed for _, typed in row]), "VALUES")(())
            for row in rows
        ]

        def stream() -> DataStream[Any]:
            # With a type, from_collection() would cut times to milliseconds.
            made = self._tables.stream_environment.from_collection(records).name("VALUES")
            made.transformation.output_type = row_type(columns)  # type: ignore[attr-defined]  # it is an operator
            return made

        return Table("", None, columns, stream, self._tables)

    def by_spark(
        self,
        tree: Any,
        tables: Mapping[str, Table],
        where: str,
        columns: Sequence[Column] | None = None,
    ) -> Table:
        """A query over bounded tables, in Spark SQL.

        Args:
            tree: The parsed query.
            tables: Its tables by their names in the query.
            where: The part of the program, for errors.
            columns: The columns. By default Spark analyses the query now, and not when its rows are read.

        Raises:
            UnsupportedFeatureError: A table is unbounded, the query calls functions of the user or windows, or the job
                runs in process.
        """
        streams = {path: self._tables.to_data_stream(table) for path, table in tables.items()}
        part, instead = unbounded_part(tree)
        for each in filter(function_of, tree.walk()):
            raise UnsupportedFeatureError(
                f"{where}: {part} with the function {each.name} is not supported, because it runs in Spark "
                "SQL; call the function in a query with columns and WHERE only, and make that query a view"
            )
        for each in filter(is_window, tree.walk()):
            raise UnsupportedFeatureError(
                f"{where}: {each.name.upper()} is only supported in a query that groups by its windows, or that has columns and "
                "WHERE only; GROUP BY window_start, window_end and other columns, and make that query a view for "
                f"{part}"
            )
        for path, stream in streams.items():
            if never_ends(stream.transformation):
                raise UnsupportedFeatureError(
                    f"{where}: {part} over the unbounded table '{tables[path].path or path}' is not supported: "
                    f"results would change with each row. {_WINDOWS.get(part, '')}Convert the table with "
                    f"to_data_stream(), and use {instead} of the DataStream API"
                )
        if read_settings(self._tables.stream_environment.get_configuration()).target == "local":
            raise UnsupportedFeatureError(
                f"{where}: {part} runs in Spark SQL, and this job runs in process (execution.target = local); run it "
                f"on Spark, or use {instead} of the DataStream API"
            )
        if not streams:
            raise UnsupportedFeatureError(f"{where}: the query reads no table")
        frame = cache(lambda: self._frame(tree, tables, streams, f"{where}: {part}"))
        if columns is None:
            columns = [
                Column(each.name, type_of_spark(each.dataType.simpleString()))
                for each in frame().schema
            ]
        rows = self._tables.stream_environment.from_dataframe
        made = cache(lambda: rows(frame(), source_name="Spark SQL"))
        # Spark's rows have no event time.
        plain = tuple(Column(*each) for each in columns)
        return Table("Spark SQL", None, plain, made, self._tables)

    def _frame(
        self,
        tree: Any,
        tables: Mapping[str, Table],
        streams: Mapping[str, DataStream[Any]],
        where: str,
    ) -> Any:
        """The DataFrame of a query."""
        frames = {
            path: stream.to_dataframe(spark_schema(tables[path].columns))
            for path, stream in streams.items()
        }
        if any(isinstance(frame, PlannedDataFrame) for frame in frames.values()):
            raise UnsupportedFeatureError(
                f"{where} runs in Spark SQL, and no Spark session is running, because the program is only planned; "
                "run the program"
            )
        names = {}
        for path, frame in frames.items():
            names[path] = f"opchain_{next(self._tables.numbers)}"
            frame.createOrReplaceTempView(names[path])
        exp, renamed = sqlglot().exp, tree.copy()
        for table in renamed.find_all(exp.Table):
            if path_of(table) in names:
                alias = table.alias_or_name
                table.set("this", parsed(names[path_of(table)], "a name").this)
                table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        session = next(iter(frames.values())).sparkSession
        schema = {names[path]: spark_types(tables[path].columns) for path in frames}
        text = for_spark(renamed, schema, where.rpartition(":")[0]).sql(dialect="spark")
        with _set(session, "spark.sql.timestampType", "TIMESTAMP_NTZ"):
            return session.sql(text)

    def _tables_of(self, tree: Any) -> dict[str, Table]:
        defined = {each.alias for each in tree.find_all(sqlglot().exp.CTE)}
        paths = [path_of(each) for each in named_tables(tree)]
        return {path: self._tables.from_path(path) for path in paths if path not in defined}


_WINDOWS = dict.fromkeys(
    ("GROUP BY", "aggregation"),
    "Group by a window such as TUMBLE, whose results are final: see 'Windows' in the documentation of tables. Or: ",
)
"""What an error says before it names the DataStream API."""


@contextmanager
def _set(session: SparkSession, key: str, value: str) -> Iterator[None]:
    """Sets a configuration of Spark for as long as a query is analysed."""
    before = session.conf.get(key)
    session.conf.set(key, value)
    try:
        yield
    finally:
        session.conf.set(key, before or "")


def _the_query() -> str:
    """The query as messages name it, with the user's line."""
    return f"the query ({user_call_site()})"


def _type_of_values(values: Sequence[Typed], where: str, name: str) -> DataType:
    """The type of a column of VALUES, in which NULL has any type."""
    types = [each.data_type for each in values if each.text != "None"]
    of = _type_of_column(types or [values[0].data_type], where, name)
    return of if len(types) == len(values) else of.nullable()


def _type_of_column(types: Sequence[DataType], where: str, name: str) -> DataType:
    """The type of a column whose values have one of several types. It is nullable if one of them is."""
    of = common_type(types, f"{where}: column '{name}' is")
    return of.nullable() if any(each.is_nullable for each in types) else of.not_null()


def _cast_to(columns: Sequence[Column], values: Sequence[Typed]) -> list[Typed]:
    """The values of a row, in the types of the columns."""
    return [fitted(value, column.data_type) for value, column in zip(values, columns, strict=True)]


def _with_types(table: Table, columns: Sequence[Column]) -> DataStream[Any]:
    """The rows of a table with the names and types of other columns."""
    values = _cast_to(columns, list(by_position(table.columns).values()))
    return projected(table.stream(), table.columns, columns, values)
