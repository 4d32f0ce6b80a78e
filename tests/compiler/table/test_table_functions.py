"""Table functions of users in the Table API and SQL. The results equal PyFlink 2.3's, except for NULL in a single INT column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Row
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.table import DataTypes, StreamTableEnvironment, Table
from opchain.table.expressions import call, col, lit
from opchain.table.udf import FunctionContext, TableFunction, udtf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INT, STRING = DataTypes.INT(), DataTypes.STRING()
CALLS: list[str] = []
k, s = col("k"), col("s")


@udtf(result_types=[STRING])  # type: ignore[untyped-decorator]
def words(row: Row) -> Iterator[Row]:
    for word in (row[1] or "").split():
        yield Row(word)


@udtf(result_types=[INT, "STRING"])  # type: ignore[untyped-decorator]
def pairs(number: int, text: str | None) -> Iterator[tuple[int, str]]:
    for word in (text or "").split():
        yield number + 1, word


class Twice(TableFunction):
    """Counts to a number that `open` sets."""

    def open(self, function_context: FunctionContext) -> None:
        CALLS.append(f"open {function_context.get_index_of_this_subtask()}")
        self.count = 2

    def eval(self, _number: int) -> range:
        return range(self.count)

    def close(self) -> None:
        CALLS.append("close")


class Random(TableFunction):
    """A function that is called each time."""

    def is_deterministic(self) -> bool:
        return False

    def eval(self) -> int:
        return 4


def returning(value: Any, of: Any = INT) -> Any:
    return udtf(lambda _: value, result_types=of)(k)


@pytest.fixture
def table() -> Table:
    configuration = Configuration().set_string("execution.target", "local")
    tables = StreamTableEnvironment.create(
        StreamExecutionEnvironment.get_execution_environment(configuration)
    )
    fields = [DataTypes.FIELD("k", INT), DataTypes.FIELD("s", STRING)]
    return tables.from_elements([(1, "x y"), (2, ""), (3, None)], DataTypes.ROW(fields))


def result(table: Table) -> tuple[list[str], list[tuple[Any, ...]]]:
    with table.execute().collect() as rows:
        return list(table.get_schema().get_field_names()), [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        (lambda t: t.flat_map(words), ["f0"], [("x",), ("y",)]),
        (lambda t: t.flat_map(words).alias("w"), ["w"], [("x",), ("y",)]),
        (lambda t: t.flat_map(pairs(k, s)), ["f0", "f1"], [(2, "x"), (2, "y")]),
        (lambda t: t.flat_map(returning([5, 6])).where(col("f0") > 5), ["f0"], [(6,)] * 3),
        (lambda t: t.flat_map(returning(None)), ["f0"], []),
        (lambda t: t.flat_map(returning(5)), ["f0"], [(5,)] * 3),
        (lambda t: t.flat_map(returning((5, 6), [INT, INT])), ["f0", "f1"], [(5, 6)] * 3),
        (lambda t: t.flat_map(returning([(5,)], "ROW<a INT, b INT>")), ["a", "b"], [(5, None)] * 3),
        (
            lambda t: t.flat_map(
                returning(
                    [Row(5, "x")],
                    DataTypes.ROW([DataTypes.FIELD("a", INT), DataTypes.FIELD("b", STRING)]),
                )
            ),
            ["f0", "f1"],
            [(5, "x")] * 3,
        ),
        (
            lambda t: t.join_lateral(pairs(k, s).alias("p", "q"), lit(True)),
            ["k", "s", "p", "q"],
            [(1, "x y", 2, "x"), (1, "x y", 2, "y")],
        ),
        (
            lambda t: t.join_lateral(words.alias("w")).select(k, col("w")),
            ["k", "w"],
            [(1, "x"), (1, "y")],
        ),
        (
            lambda t: t.left_outer_join_lateral(pairs(k, s)),
            ["k", "s", "f0", "f1"],
            [
                (1, "x y", 2, "x"),
                (1, "x y", 2, "y"),
                (2, "", None, None),
                (3, None, None, None),
            ],
        ),
    ],
)
def test_rows_of_a_table_function(
    table: Table, query: Callable[[Table], Table], names: list[str], rows: list[Any]
) -> None:
    assert result(query(table)) == (names, rows)


def test_a_table_function_is_called_by_its_registered_name(table: Table) -> None:
    assert table.environment is not None
    table.environment.create_temporary_function("pairs_of", pairs)
    found = table.join_lateral(call("pairs_of", k, s).alias("p", "q")).select(k, col("q"))
    assert result(found)[1] == [(1, "x"), (1, "y")]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT * FROM a, LATERAL TABLE(f(k, s)) AS t(p, q)",
            [(1, "x y", 2, "x"), (1, "x y", 2, "y")],
        ),
        ("SELECT k, f1 FROM a CROSS JOIN LATERAL TABLE(f(k, s))", [(1, "x"), (1, "y")]),
        (
            "SELECT b.n, t.q FROM a AS b(n, m) LEFT JOIN LATERAL TABLE(f(b.n, b.m)) AS t(p, q) ON TRUE WHERE n < 3",
            [(1, "x"), (1, "y"), (2, None)],
        ),
        (
            "SELECT q, r FROM a, LATERAL TABLE(f(k, s)) AS t(p, q), LATERAL TABLE(f(p, 'z')) AS u(o, r)",
            [("x", "z"), ("y", "z")],
        ),
    ],
)
def test_sql_joins_a_table_function(table: Table, query: str, rows: list[Any]) -> None:
    assert table.environment is not None
    table.environment.create_temporary_view("a", table)
    table.environment.create_temporary_function("f", pairs)
    assert result(table.environment.sql_query(query))[1] == rows
    with pytest.raises(UnsupportedFeatureError, match=r"GROUP BY with the function f .* a view"):
        table.environment.sql_query(f"SELECT COUNT(*) FROM ({query}) GROUP BY 1")


def test_a_table_function_is_opened_and_closed_once(table: Table) -> None:
    CALLS.clear()
    twice = udtf(Twice(), result_types=DataTypes.BIGINT(), name="twice")
    assert result(table.flat_map(twice(k)))[1] == [(0,), (1,)] * 3
    assert CALLS == ["open 0", "close"]
    assert not udtf(Random(), result_types=INT).is_deterministic


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (lambda t: t.select(pairs(k, s)), GraphError, "pairs is a table function; call it in flat"),
        (lambda t: t.flat_map(k), GraphError, r"flat_map\(\) .* that udtf\(\) returned, and got k"),
        (lambda t: t.flat_map(returning(1).alias("z")), GraphError, r"a call without alias\(\)"),
        (lambda t: t.join_lateral(pairs(k, s).alias("k", "q")), GraphError, "have the name 'k'"),
        (lambda t: t.join_lateral(pairs(k, s).alias("p")), GraphError, "2 columns.*1 names"),
        (
            lambda t: t.join_lateral(pairs(k, s).alias("p", "q"), col("q") == "x"),
            UnsupportedFeatureError,
            r"join_lateral with a predicate\(\) .*call where\(\) of the result",
        ),
    ],
)
def test_other_calls_of_table_functions_are_refused(
    table: Table, query: Callable[[Table], Table], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        query(table)


def test_a_result_of_another_type_fails(table: Table) -> None:
    with pytest.raises(TypeError, match="is not of its result_type: 'a' is declared as INT"):
        result(table.flat_map(returning("a")))


def test_a_table_function_needs_types() -> None:
    with pytest.raises(TypeError, match=r"^udtf\(\) .*: the type is None; pass a type"):
        udtf(lambda: 1)
