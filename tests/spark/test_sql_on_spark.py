"""Queries of any kind over bounded tables run in Spark SQL; simple ones on Spark as operators."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from opchain.datastream import StreamExecutionEnvironment
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
