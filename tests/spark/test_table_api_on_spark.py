"""Groups, joins, sets and orders of the Table API over bounded tables. The results equal PyFlink 2.3's in batch mode."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError
from opchain.table import DataTypes, StreamTableEnvironment, Table
from opchain.table.expressions import call, col, lit
from opchain.table.udf import udf, udtf

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

k, s, d, n, other, t = (col(name) for name in ("k", "s", "d", "n", "id", "t"))
same = k == other
NOON = datetime(2024, 1, 2, 12)  # noqa: DTZ001 - TIMESTAMP has no zone


class Tables:
    """Tables with rows."""

    def __init__(self) -> None:
        tables = StreamTableEnvironment.create(
            StreamExecutionEnvironment.get_execution_environment()
        )
        rows = [(1, "x", 2.5, 7), (2, "y", 1.5, 8), (1, "x", None, 9), (None, "z", 0.5, 10)]
        self.a = tables.from_elements(rows, _of("k INT, s STRING, d DOUBLE, n BIGINT"))
        pairs = [(1, "x"), (3, "by"), (1, "x"), (1, "q")]
        self.b = tables.from_elements(pairs, _of("id INT, t STRING"))
        self.c = tables.from_elements([(1, "x"), (3, "by"), (3, "by")], _of("m BIGINT, u STRING"))
        self.times = tables.from_elements(
            [("p", NOON, Decimal("1.50")), ("p", None, Decimal("2.25"))],
            _of("name STRING, at TIMESTAMP(3), amount DECIMAL(10, 2)"),
        )
        self.environment = tables


def _of(text: str) -> Any:
    from opchain.compiler.table.data_types import data_type_of  # noqa: PLC0415 - only for tests

    return data_type_of(f"ROW<{text}>")


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    with table.execute().collect() as rows:
        return [tuple(row) for row in rows]


def names_of(table: Table) -> list[str]:
    return list(table.get_schema().get_field_names())


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        (
            lambda v: v.a.group_by(k).select(k, d.sum, n.avg, lit(1).count, s.max, d.count),
            ["k", "EXPR$0", "EXPR$1", "EXPR$2", "EXPR$3", "EXPR$4"],
            {(None, 0.5, 10, 1, "z", 1), (1, 2.5, 8, 2, "x", 1), (2, 1.5, 8, 1, "y", 1)},
        ),
        (
            lambda v: v.a.group_by(k).select(
                d.sum + 1, n.sum.alias("x"), n.sum.cast(DataTypes.INT()), n.sum
            ),
            ["_c0", "x", "EXPR$1-INT", "EXPR$1"],
            {(1.5, 10, 10, 10), (3.5, 16, 16, 16), (2.5, 8, 8, 8)},
        ),
        (
            lambda v: v.a.group_by((k + 1).alias("m")).select(col("m"), (n + k).sum),
            ["m", "EXPR$0"],
            {(2, 18), (3, 10), (None, None)},
        ),
        (
            lambda v: v.a.group_by(s).select(
                s, k.count.distinct, n.stddev_samp, n.var_pop, n.var_samp, d.stddev_pop
            ),
            ["s", "EXPR$0", "EXPR$1", "EXPR$2", "EXPR$3", "EXPR$4"],
            {("x", 1, 1, 1, 2, 0.0), ("y", 1, None, 0, None, 0.0), ("z", 0, None, 0, None, 0.0)},
        ),
        (lambda v: v.a.group_by(k, s).select(k), ["k"], {(1,), (2,), (None,)}),
        (lambda v: v.a.group_by().select(lit(1)), ["_c0"], {(1,)}),
        (
            lambda v: v.a.select(k.sum, call("COUNT", lit(1)), n.max),
            ["EXPR$0", "EXPR$1", "EXPR$2"],
            {(4, 4, 10)},
        ),
        (
            lambda v: (
                v.a.group_by(k)
                .select(k, n.sum.alias("x"))
                .where(col("x") > 8)
                .order_by(col("x").desc)
            ),
            ["k", "x"],
            [(1, 16), (None, 10)],
        ),
        (
            lambda v: v.times.group_by(col("name")).select(
                col("at").max.alias("last"), col("amount").sum
            ),
            ["last", "EXPR$1"],
            {(NOON, Decimal("3.75"))},
        ),
        (lambda v: v.b.distinct(), ["id", "t"], {(1, "x"), (3, "by"), (1, "q")}),
    ],
)
def test_groups_have_the_columns_and_results_of_pyflink(
    tables: Tables, query: Callable[[Tables], Table], names: list[str], expected: Any
) -> None:
    table = query(tables)
    assert names_of(table) == names
    found = rows_of(table)
    assert (found if isinstance(expected, list) else set(found)) == expected


MATCHES = [(1, 7, "q"), (1, 7, "x"), (1, 7, "x"), (1, 9, "q"), (1, 9, "x"), (1, 9, "x")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (lambda v: v.a.join(v.b, same), MATCHES),
        (lambda v: v.a.join(v.b).where(same & (n > 7)), MATCHES[3:]),
        (lambda v: v.a.join(v.b).where(same).where(n > 7), MATCHES[3:]),
        (lambda v: v.a.join(v.b, same & (s == t) & (n < 9)), MATCHES[1:3]),
        (
            lambda v: v.a.left_outer_join(v.b, same & (n < 9)),
            [*MATCHES[:3], (1, 9, None), (2, 8, None), (None, 10, None)],
        ),
        (lambda v: v.a.right_outer_join(v.b, same), [*MATCHES, (None, None, "by")]),
        (
            lambda v: v.a.full_outer_join(v.b, same),
            [*MATCHES, (2, 8, None), (None, 10, None), (None, None, "by")],
        ),
        (
            lambda v: v.a.join(v.b.where(t == "q"), lit(True)).where(k == 2),
            [(2, 8, "q")],
        ),
        (
            lambda v: v.a.join(v.b, same).join(v.c, (col("m") == other) & (t == "q")),
            [(1, 7, "q"), (1, 9, "q")],
        ),
    ],
)
def test_joins_have_the_results_of_pyflink(
    tables: Tables, query: Callable[[Tables], Table], expected: list[Any]
) -> None:
    assert sorted(rows_of(query(tables).select(k, n, t)), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("union", [(1, "q"), (1, "x"), (3, "by")]),
        ("intersect", [(1, "x"), (3, "by")]),
        ("intersect_all", [(1, "x"), (3, "by")]),
        ("minus", [(1, "q")]),
        ("minus_all", [(1, "q"), (1, "x")]),
    ],
)
def test_sets_have_the_wider_type_and_the_results_of_pyflink(
    tables: Tables, operation: str, expected: list[Any]
) -> None:
    table = getattr(tables.b, operation)(tables.c)
    assert str(table.get_schema().get_field_data_type("id")) == "BIGINT"
    assert sorted(rows_of(table)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (lambda v: v.a.order_by(k, n.desc), [9, 7, 8, 10]),  # NULL is the greatest value
        (lambda v: v.a.order_by(k.desc, n.asc), [10, 8, 7, 9]),
        (lambda v: v.a.order_by(n * -1), [10, 9, 8, 7]),
        (lambda v: v.a.order_by(n.desc).fetch(2), [10, 9]),
        (lambda v: v.a.order_by(n.desc).offset(1).fetch(2), [9, 8]),
        (lambda v: v.a.order_by(n.desc).offset(3), [7]),
        (lambda v: v.a.order_by(n).limit(2, 1), [8, 9]),
        (lambda v: v.a.order_by(n).fetch(3).order_by(d.desc), [9, 7, 8]),
        (lambda v: v.a.fetch(0), []),
    ],
)
def test_orders_have_the_results_of_pyflink(
    tables: Tables, query: Callable[[Tables], Table], expected: list[int]
) -> None:
    assert [row[3] for row in rows_of(query(tables))] == expected


def test_functions_of_the_user_run_before_and_after_spark(tables: Tables) -> None:
    double = udf(lambda value: value * 2, result_type=DataTypes.BIGINT(), name="f")
    negated = udf(lambda value: -value, result_type=DataTypes.BIGINT(), name="f")
    found = tables.a.group_by(s).select(double(double(n).sum).alias("x"), negated(n).sum)
    assert set(rows_of(found)) == {(64, -16), (32, -8), (40, -10)}
    ordered = tables.a.join(tables.b).where(same & (negated(n) < -7)).order_by(negated(n), t)
    assert [tuple(row) for row in rows_of(ordered.select(n, t))] == [(9, "q"), (9, "x"), (9, "x")]


def test_words_of_a_table_function_are_counted(tables: Tables) -> None:
    split = udtf(lambda row: row[1].split("b"), result_types=[DataTypes.STRING()])
    words = tables.b.flat_map(split).alias("word")
    counts = words.group_by(col("word")).select(col("word"), lit(1).count)
    assert set(rows_of(counts)) == {("x", 2), ("q", 1), ("", 1), ("y", 1)}


def test_a_group_is_written_and_read_by_other_queries(tables: Tables) -> None:
    grouped = tables.a.group_by(k).select(k, n.sum.alias("total"))
    tables.environment.create_temporary_view("totals", grouped)
    query = "SELECT MAX(total) FROM totals WHERE k IS NOT NULL"
    assert rows_of(tables.environment.sql_query(query)) == [(16,)]
    with (
        tables.environment.to_data_stream(grouped)
        .map(lambda row: row.total)
        .execute_and_collect() as totals
    ):
        assert sorted(totals) == [8, 10, 16]
    tables.environment.execute_sql(
        "CREATE TABLE out (k INT, n BIGINT) WITH ('connector' = 'blackhole')"
    )
    grouped.execute_insert("out").wait()
    assert "Spark SQL" in grouped.explain()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda v: v.a.group_by(k).select(s, n.sum), r"GroupedTable.select\(\).* 's'.* k, EXPR\$0"),
        (lambda v: v.a.group_by(k).select(n.sum, n.sum), r"would have the name 'EXPR\$0'"),
        (lambda v: v.a.select(n.sum.max), "an aggregate within an aggregate"),
        (lambda v: v.a.join(v.a, same), r"^Table.join\(\).* would have the name 'k'"),
        (lambda v: v.a.join(v.b, k > other), r"k > id compares no column of one table"),
        (lambda v: v.a.left_outer_join(v.b, same | (s == t)), "compares no column"),
        (lambda v: v.a.union(v.c), r"^Table.union\(\).* 4 columns, and the second one 2"),
        (lambda v: v.a.select(s, k).minus(v.c), "column 's' is STRING and BIGINT"),
        (lambda v: v.a.order_by(col("zz")), "'zz'"),
        (lambda v: v.a.fetch(-3), "at least 0"),
        (lambda v: v.a.fetch(3).fetch(2), "has a limit already"),
        (lambda v: v.a.offset(3).offset(2), "has an offset or a limit already"),
    ],
)
def test_queries_that_pyflink_refuses_are_refused(
    tables: Tables, query: Callable[[Tables], Table], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        query(tables)
