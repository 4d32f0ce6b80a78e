"""Any query over bounded tables runs in Spark SQL; simple queries run as operators on Spark."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.table import StreamTableEnvironment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]


def test_a_bounded_query_may_aggregate_and_join(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [{"k": n % 2, "v": n, "ts": "2024-01-02 03:04:05"} for n in range(6)]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tables = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    tables.execute_sql(
        "CREATE TABLE t (k INT, v BIGINT, ts TIMESTAMP(3)) "
        f"WITH ('connector'='filesystem','path'='{tmp_path}/in','format'='json')"
    )
    tables.execute_sql("CREATE VIEW odd AS SELECT k, v FROM t WHERE k = 1")
    query = "SELECT a.k, SUM(a.v) AS total, COUNT(*) AS n FROM t AS a JOIN odd AS b ON a.k = b.k GROUP BY a.k"
    found = [list(row) for row in tables.execute_sql(query).collect()]
    assert found == [[1, 27, 9]]
    with (
        tables.to_data_stream(
            tables.sql_query("SELECT k, MAX(ts) AS last FROM t GROUP BY k ORDER BY k")
        )
        .map(lambda row: (row.k, row["last"].year))
        .execute_and_collect() as rows
    ):
        assert list(rows) == [(0, 2024), (1, 2024)]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_windows_run_on_spark_and_their_results_may_be_sorted(tmp_path: Path, mode: str) -> None:
    (tmp_path / "in").mkdir()
    lines = [{"k": f"k{n % 3}", "v": n, "ts": f"2024-01-02 00:0{n % 4}:00"} for n in range(40)]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tables = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    tables.get_config().set("execution.runtime-mode", mode)
    tables.execute_sql(
        "CREATE TABLE t (k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' MINUTE) "
        f"WITH ('connector'='filesystem','path'='{tmp_path}/in','format'='json')"
    )
    tables.execute_sql(
        "CREATE VIEW sums AS SELECT window_start, window_end, k, COUNT(*) AS c, SUM(v) AS s, COUNT(DISTINCT v) AS d "
        "FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)) "
        "GROUP BY window_start, window_end, k"
    )
    start = datetime(2024, 1, 2)  # noqa: DTZ001 - TIMESTAMP has no zone
    expected = []
    for first in (0, 2):
        for past in (1, 2):
            for k in range(3):
                values = [n for n in range(40) if n % 3 == k and first <= n % 4 < first + past]
                begin, end = (start + timedelta(minutes=n) for n in (first, first + past))
                expected.append((begin, end, f"k{k}", len(values), sum(values), len(values)))
    with tables.execute_sql("SELECT * FROM sums").collect() as rows:
        assert sorted(map(tuple, rows)) == sorted(expected)
    query = "SELECT * FROM sums ORDER BY window_end DESC, k"
    with tables.execute_sql(query).collect() as rows:
        ordered = sorted(expected, key=lambda row: row[2])
        assert list(map(tuple, rows)) == sorted(ordered, key=lambda row: row[1], reverse=True)
    if mode == "STREAMING":
        tables.execute_sql("CREATE VIEW sorted_rows AS SELECT * FROM t ORDER BY k")
        with pytest.raises(GraphError, match="TUMBLE needs a column of event time"):
            tables.sql_query(
                "SELECT k FROM sorted_rows GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), k"
            )


COLUMNS = "id INT, n INT, b BOOLEAN, name STRING, d DOUBLE, ts TIMESTAMP(3), arr ARRAY<INT>, amt DECIMAL(10, 2)"
LINES = [
    {
        "id": 1,
        "n": 5,
        "b": True,
        "name": "Ann",
        "d": 2.5,
        "ts": "2024-01-02 03:04:12.5",
        "arr": [1, 2],
        "amt": 10.50,
    },
    {"id": 2, "b": False, "d": -2.5, "ts": "2024-01-02 03:04:05", "arr": [], "amt": 3.25},
    {"id": 3, "n": 7, "name": "a1b2", "d": 0.1},
]
MIDNIGHT = datetime(2024, 1, 2)  # noqa: DTZ001 - TIMESTAMP has no zone


@pytest.fixture
def tables(tmp_path: Path) -> StreamTableEnvironment:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    tables = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    tables.execute_sql(
        f"CREATE TABLE t ({COLUMNS}) WITH ('connector'='filesystem','path'='{tmp_path}/in','format'='json')"
    )
    return tables


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id / 2, -id / 2, id % 2 FROM t ORDER BY id", [(0, 0, 1), (1, -1, 0), (1, -1, 1)]),
        (
            "SELECT AVG(n), SUM(id) / 2, SUM(id), COUNT(*), SUM(amt) FROM t",
            [(6, 3, 6, 3, Decimal("13.75"))],
        ),
        ("SELECT id / 2 AS k, COUNT(*) FROM t GROUP BY id / 2 ORDER BY k", [(0, 1), (1, 2)]),
        ("SELECT id FROM t GROUP BY id HAVING SUM(id) / 2 = 1 ORDER BY id", [(2,), (3,)]),
        (
            "SELECT id, SUM(n) OVER (ORDER BY id), AVG(n) OVER (ORDER BY id) FROM t ORDER BY id",
            [(1, 5, 5), (2, 5, 5), (3, 12, 6)],
        ),
        ("SELECT GREATEST(id, n), LEAST(id, n) FROM t ORDER BY id", [(5, 1), (None, None), (7, 3)]),
        (
            "SELECT CAST(b AS STRING), CAST(name AS VARCHAR(2)), CAST(name AS CHAR(6)) FROM t ORDER BY id",
            [("TRUE", "An", "Ann   "), ("FALSE", None, None), (None, "a1", "a1b2  ")],
        ),
        ("SELECT CONCAT_WS('-', name, 'z') FROM t ORDER BY id", [("Ann-z",), ("z",), ("a1b2-z",)]),
        ("SELECT CEIL(d), FLOOR(d) FROM t ORDER BY id", [(3.0, 2.0), (-2.0, -3.0), (1.0, 0.0)]),
        (
            "SELECT EXTRACT(SECOND FROM ts), CAST(DATE '2024-01-02' AS TIMESTAMP(3)) FROM t ORDER BY id",
            [(12, MIDNIGHT), (5, MIDNIGHT), (None, MIDNIGHT)],
        ),
        (
            "SELECT REGEXP_EXTRACT(name, '[0-9]'), REGEXP_REPLACE(name, '([0-9])', '<$1>') FROM t ORDER BY id",
            [(None, "Ann"), (None, None), ("1", "a<$1>b<$1>")],
        ),
        ("SELECT arr[1], CARDINALITY(arr) FROM t ORDER BY id", [(1, 2), (None, 0), (None, None)]),
        (
            (
                "SELECT a.k, b.id FROM (SELECT id / 2 AS k, MAX(id) AS m FROM t GROUP BY id / 2) a "
                "LEFT JOIN t b ON a.m = b.id ORDER BY a.k"
            ),
            [(0, 1), (1, 3)],
        ),
        (
            "WITH c AS (SELECT id / 2 AS Half FROM t) SELECT DISTINCT Half FROM c ORDER BY Half",
            [(0,), (1,)],
        ),
        ("SELECT id FROM t WHERE id IN (SELECT n / 5 FROM t) ORDER BY id", [(1,)]),
    ],
)
def test_spark_returns_the_results_of_flink(
    tables: StreamTableEnvironment, query: str, expected: list[Any]
) -> None:
    """The results of PyFlink 2.3 in batch mode."""
    result = tables.execute_sql(query)
    with result.collect() as rows:
        assert [tuple(row) for row in rows] == expected


def test_columns_have_the_names_of_flink(tables: StreamTableEnvironment) -> None:
    table = tables.sql_query(
        "SELECT id / 2, Name AS Up FROM (SELECT id, name AS Name FROM t) ORDER BY id"
    )
    assert table.get_schema().get_field_names() == ["EXPR$0", "Up"]


def test_expressions_that_spark_evaluates_differently_are_refused(
    tables: StreamTableEnvironment,
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"TRUNC.* in queries that run in Spark SQL"):
        tables.sql_query("SELECT TRUNCATE(d, 1) FROM t ORDER BY id")
