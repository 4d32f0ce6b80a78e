"""Windows of SQL and of the Table API. The results equal PyFlink 2.3's in streaming mode."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import (
    Configuration,
    Row,
    Types,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from opchain.common.time import Instant
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.runtime.functions.sql import epoch_ms
from opchain.table import DataTypes, Schema, StreamTableEnvironment, Table
from opchain.table.expressions import col, lit
from opchain.table.udf import udf
from opchain.table.window import Session, Slide, Tumble

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CLICKS = [
    ("ann", "/a", 4, 2.5, "1.25", True, "00:00:05"),
    ("bob", "/b", None, 1.5, None, None, "00:00:10"),
    ("ann", "/b", -1, None, "3.00", False, "00:00:40"),
    (None, "/a", 7, 8.0, "0.50", True, "00:00:50"),
    ("bob", None, 2, 0.25, "9.99", True, "00:01:00"),
    ("bob", "/b", 2, 4.0, "1.00", False, "00:01:10"),
    ("ann", "/c", 3, -1.0, "2.00", None, "00:01:15"),
    ("ann", "/c", 5, 1.0, "4.00", True, "00:03:30"),
]
NAMES = ("name", "url", "n", "price", "amount", "ok", "ts")
TUMBLE = "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
HOP = "TABLE(HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))"
CUMULATE = (
    "TABLE(CUMULATE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE))"
)
SESSION = "TABLE(SESSION(TABLE clicks PARTITION BY name, DESCRIPTOR(ts), INTERVAL '30' SECOND))"
PROCESSING = "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' MINUTE))"
WINDOW = "GROUP BY window_start, window_end"
MINUTE = "ts, INTERVAL '1' MINUTE"
HALF = "ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE"
GAP = "ts, INTERVAL '30' SECOND"
QUERIES = {
    "keys": f"SELECT window_start, window_end, name, COUNT(*) FROM {TUMBLE} {WINDOW}, name",
    "time": f"SELECT window_time, COUNT(url) AS c FROM {TUMBLE} {WINDOW}, window_time",
    "sums": f"SELECT window_end, SUM(n), SUM(price), SUM(amount), AVG(n), AVG(price), AVG(amount) FROM {TUMBLE} {WINDOW}",
    "extremes": f"SELECT window_end, MIN(n), MAX(url), MIN(amount), MAX(ts), MIN(ok) FROM {TUMBLE} {WINDOW}",
    "deviations": f"SELECT window_end, STDDEV(n), VAR_POP(price), VARIANCE(amount), STDDEV_POP(n) FROM {TUMBLE} {WINDOW}",
    "values": f"SELECT window_end, FIRST_VALUE(name), LAST_VALUE(n), LISTAGG(url), LISTAGG(url, '-') FROM {TUMBLE} {WINDOW}",
    "different": f"SELECT window_end, COUNT(DISTINCT url), SUM(DISTINCT n), AVG(DISTINCT n) FROM {TUMBLE} {WINDOW}",
    "filters": f"SELECT window_end, COUNT(*) FILTER (WHERE ok), SUM(n) FILTER (WHERE price > 1), COUNT(DISTINCT url) FILTER (WHERE n > 1) FROM {TUMBLE} {WINDOW}",
    "having": f"SELECT window_start, SUM(n) * 2 + 1 AS s, COUNT(*) FROM {TUMBLE} WHERE n > 0 {WINDOW} HAVING COUNT(*) > 1 OR MAX(n) = 5",
    "empty": f"SELECT window_start, COUNT(*) FROM {TUMBLE} WHERE n > 100 {WINDOW}",
    "expression keys": f"SELECT UPPER(url) AS u, window_end, COUNT(*) FROM {TUMBLE} GROUP BY UPPER(url), window_start, window_end",
    "several keys": f"SELECT ok, name, window_end, COUNT(*) FROM {TUMBLE} {WINDOW}, name, ok",
    "qualified": f"SELECT w.name, w.window_end, SUM(w.n) FROM {TUMBLE} AS w GROUP BY w.name, w.window_start, w.window_end",
    "where window": f"SELECT window_start, COUNT(*) FROM {TUMBLE} WHERE window_start > TIMESTAMP '2024-01-01 00:00:00' {WINDOW}",
    "key of window": f"SELECT DATE_FORMAT(window_start, 'HH:mm') AS m, MAX(window_end) FROM {TUMBLE} {WINDOW}, DATE_FORMAT(window_start, 'HH:mm')",
    "no aggregate": f"SELECT window_start, name FROM {TUMBLE} {WINDOW}, name",
    "hop": f"SELECT window_start, window_end, COUNT(*), SUM(n) FROM {HOP} {WINDOW}",
    "cumulate": f"SELECT window_start, window_end, COUNT(*), SUM(n) FROM {CUMULATE} {WINDOW}",
    "session": f"SELECT window_start, window_end, name, COUNT(*), SUM(n), COUNT(DISTINCT url), AVG(price), LISTAGG(url) FROM {SESSION} {WINDOW}, name",
    "offset": "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' SECOND)) GROUP BY window_start, window_end",
    "named arguments": "SELECT window_start, COUNT(*) FROM TABLE(HOP(DATA => TABLE clicks, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '30' SECOND, SIZE => INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
    "without TABLE": "SELECT window_start, COUNT(*) FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' DAY) GROUP BY window_start, window_end",
    "rows": f"SELECT name, ts, window_start, window_end, window_time FROM {HOP} WHERE n > 3",
    "rows of cumulate": f"SELECT name, ts, window_end FROM {CUMULATE} WHERE n > 3",
    "rows of sessions": f"SELECT name, ts, window_start, window_end FROM {SESSION} WHERE n > 3",
    "rows then groups": f"WITH w AS (SELECT *, n * 2 AS m FROM {TUMBLE}) SELECT window_start, SUM(m) FROM w {WINDOW}",
    "renamed windows": f"SELECT a, SUM(c) FROM (SELECT window_start, window_end, n FROM {HOP}) AS w(a, b, c) GROUP BY a, b",
    "cascade": f"SELECT window_start, SUM(c) FROM TABLE(TUMBLE((SELECT window_time AS t, COUNT(*) AS c FROM {TUMBLE} {WINDOW}, window_time, name), DESCRIPTOR(t), INTERVAL '2' MINUTE)) {WINDOW}",
    "groups of groups": f"SELECT window_start, window_time, MAX(c) FROM (SELECT window_start, window_end, window_time, name, COUNT(*) AS c FROM {TUMBLE} {WINDOW}, window_time, name) {WINDOW}, window_time",
    "union": f"SELECT window_start, COUNT(*) FROM {TUMBLE} {WINDOW} UNION ALL SELECT window_end, COUNT(n) FROM {TUMBLE} {WINDOW}",
    "group window": f"SELECT name, TUMBLE_START({MINUTE}), TUMBLE_END({MINUTE}) AS e, TUMBLE_ROWTIME({MINUTE}) AS r, COUNT(*) FROM clicks GROUP BY TUMBLE({MINUTE}), name",
    "group hop": f"SELECT HOP_START({HALF}) AS s, HOP_END({HALF}) AS e, SUM(n) FROM clicks GROUP BY HOP({HALF}) HAVING COUNT(*) > 2",
    "group session": f"SELECT name, SESSION_START({GAP}) AS s, SESSION_END({GAP}) AS e, SESSION_ROWTIME({GAP}) AS r, COUNT(*) FROM clicks GROUP BY name, SESSION({GAP})",
    "group cascade": f"SELECT TUMBLE_START(t, INTERVAL '2' MINUTE) AS s, SUM(c) FROM (SELECT TUMBLE_ROWTIME({MINUTE}) AS t, COUNT(*) AS c FROM clicks GROUP BY TUMBLE({MINUTE}), name) GROUP BY TUMBLE(t, INTERVAL '2' MINUTE)",
    "braces": f"SELECT window_end, SUM(CASE WHEN url = '{{0}}' THEN 1 ELSE n END), SUM(DISTINCT CASE WHEN url = '{{a}}' THEN 1 ELSE n END), LISTAGG(url, '{{0}}') FROM {TUMBLE} {WINDOW}",
    "only an aggregate": f"SELECT COUNT(*) FROM clicks GROUP BY TUMBLE({MINUTE})",
}


def T(minute: int, second: int = 0, micro: int = 0) -> datetime:  # noqa: N802 - short in tables of results
    """A time on the first day of 2024."""
    first = datetime(2024, 1, 1)  # noqa: DTZ001 - TIMESTAMP has no zone
    return first + timedelta(minutes=minute, seconds=second, microseconds=micro)


RESULTS: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {
    "keys": (
        ["window_start", "window_end", "name", "EXPR$3"],
        [
            (T(0), T(1), "ann", 2),
            (T(0), T(1), "bob", 1),
            (T(0), T(1), None, 1),
            (T(1), T(2), "ann", 1),
            (T(1), T(2), "bob", 2),
            (T(3), T(4), "ann", 1),
        ],
    ),
    "time": (
        ["window_time", "c"],
        [
            (T(0, 59, 999000), 4),
            (T(1, 59, 999000), 2),
            (T(3, 59, 999000), 1),
        ],
    ),
    "sums": (
        ["window_end", "EXPR$1", "EXPR$2", "EXPR$3", "EXPR$4", "EXPR$5", "EXPR$6"],
        [
            (T(1), 10, 12.0, Decimal("4.75"), 3, 4.0, Decimal("1.583333")),
            (T(2), 7, 3.25, Decimal("12.99"), 2, 1.0833333333333333, Decimal("4.330000")),
            (T(4), 5, 1.0, Decimal("4.00"), 5, 1.0, Decimal("4.000000")),
        ],
    ),
    "extremes": (
        ["window_end", "EXPR$1", "EXPR$2", "EXPR$3", "EXPR$4", "EXPR$5"],
        [
            (T(1), -1, "/b", Decimal("0.50"), T(0, 50), False),
            (T(2), 2, "/c", Decimal("1.00"), T(1, 15), False),
            (T(4), 5, "/c", Decimal("4.00"), T(3, 30), True),
        ],
    ),
    "deviations": (
        ["window_end", "EXPR$1", "EXPR$2", "EXPR$3", "EXPR$4"],
        [
            (T(1), 4, 8.166666666666666, Decimal("1.645833"), 3),
            (T(2), 0, 4.513888888888888, Decimal("24.276700"), 0),
            (T(4), None, 0.0, None, 0),
        ],
    ),
    "values": (
        ["window_end", "EXPR$1", "EXPR$2", "EXPR$3", "EXPR$4"],
        [
            (T(1), "ann", 7, "/a,/b,/b,/a", "/a-/b-/b-/a"),
            (T(2), "bob", 3, "/b,/c", "/b-/c"),
            (T(4), "ann", 5, "/c", "/c"),
        ],
    ),
    "different": (
        ["window_end", "EXPR$1", "EXPR$2", "EXPR$3"],
        [
            (T(1), 2, 10, 3),
            (T(2), 2, 5, 2),
            (T(4), 1, 5, 5),
        ],
    ),
    "filters": (
        ["window_end", "EXPR$1", "EXPR$2", "EXPR$3"],
        [
            (T(1), 2, 11, 1),
            (T(2), 1, 2, 2),
            (T(4), 1, None, 1),
        ],
    ),
    "having": (
        ["window_start", "s", "EXPR$2"],
        [
            (T(0), 23, 2),
            (T(1), 15, 3),
            (T(3), 11, 1),
        ],
    ),
    "empty": (["window_start", "EXPR$1"], []),
    "expression keys": (
        ["u", "window_end", "EXPR$2"],
        [
            ("/A", T(1), 2),
            ("/B", T(1), 2),
            ("/B", T(2), 1),
            ("/C", T(2), 1),
            ("/C", T(4), 1),
            (None, T(2), 1),
        ],
    ),
    "several keys": (
        ["ok", "name", "window_end", "EXPR$3"],
        [
            (False, "ann", T(1), 1),
            (False, "bob", T(2), 1),
            (None, "ann", T(2), 1),
            (None, "bob", T(1), 1),
            (True, "ann", T(1), 1),
            (True, "ann", T(4), 1),
            (True, "bob", T(2), 1),
            (True, None, T(1), 1),
        ],
    ),
    "qualified": (
        ["name", "window_end", "EXPR$2"],
        [
            ("ann", T(1), 3),
            ("ann", T(2), 3),
            ("ann", T(4), 5),
            ("bob", T(1), None),
            ("bob", T(2), 4),
            (None, T(1), 7),
        ],
    ),
    "where window": (
        ["window_start", "EXPR$1"],
        [
            (T(1), 3),
            (T(3), 1),
        ],
    ),
    "key of window": (
        ["m", "EXPR$1"],
        [
            ("00:00", T(1)),
            ("00:01", T(2)),
            ("00:03", T(4)),
        ],
    ),
    "no aggregate": (
        ["window_start", "name"],
        [
            (T(0), "ann"),
            (T(0), "bob"),
            (T(0), None),
            (T(1), "ann"),
            (T(1), "bob"),
            (T(3), "ann"),
        ],
    ),
    "hop": (
        ["window_start", "window_end", "EXPR$2", "EXPR$3"],
        [
            (T(-1, 30), T(0, 30), 2, 4),
            (T(0), T(1), 4, 10),
            (T(0, 30), T(1, 30), 5, 13),
            (T(1), T(2), 3, 7),
            (T(3), T(4), 1, 5),
            (T(3, 30), T(4, 30), 1, 5),
        ],
    ),
    "cumulate": (
        ["window_start", "window_end", "EXPR$2", "EXPR$3"],
        [
            (T(0), T(0, 30), 2, 4),
            (T(0), T(1), 4, 10),
            (T(1), T(1, 30), 3, 7),
            (T(1), T(2), 3, 7),
            (T(3), T(4), 1, 5),
        ],
    ),
    "session": (
        ["window_start", "window_end", "name", "EXPR$3", "EXPR$4", "EXPR$5", "EXPR$6", "EXPR$7"],
        [
            (T(0, 10), T(0, 40), "bob", 1, None, 1, 1.5, "/b"),
            (T(0, 40), T(1, 10), "ann", 1, -1, 1, None, "/b"),
            (T(0, 5), T(0, 35), "ann", 1, 4, 1, 2.5, "/a"),
            (T(0, 50), T(1, 20), None, 1, 7, 1, 8.0, "/a"),
            (T(1), T(1, 40), "bob", 2, 4, 1, 2.125, "/b"),
            (T(1, 15), T(1, 45), "ann", 1, 3, 1, -1.0, "/c"),
            (T(3, 30), T(4), "ann", 1, 5, 1, 1.0, "/c"),
        ],
    ),
    "offset": (
        ["window_start", "EXPR$1"],
        [
            (T(-1, 10), 1),
            (T(0, 10), 4),
            (T(1, 10), 2),
            (T(3, 10), 1),
        ],
    ),
    "named arguments": (
        ["window_start", "EXPR$1"],
        [
            (T(-1, 30), 2),
            (T(0), 4),
            (T(0, 30), 5),
            (T(1), 3),
            (T(3), 1),
            (T(3, 30), 1),
        ],
    ),
    "without TABLE": (
        ["window_start", "EXPR$1"],
        [
            (T(0), 8),
        ],
    ),
    "rows": (
        ["name", "ts", "window_start", "window_end", "window_time"],
        [
            ("ann", T(0, 5), T(-1, 30), T(0, 30), T(0, 29, 999000)),
            ("ann", T(0, 5), T(0), T(1), T(0, 59, 999000)),
            ("ann", T(3, 30), T(3), T(4), T(3, 59, 999000)),
            ("ann", T(3, 30), T(3, 30), T(4, 30), T(4, 29, 999000)),
            (None, T(0, 50), T(0), T(1), T(0, 59, 999000)),
            (None, T(0, 50), T(0, 30), T(1, 30), T(1, 29, 999000)),
        ],
    ),
    "rows of cumulate": (
        ["name", "ts", "window_end"],
        [
            ("ann", T(0, 5), T(0, 30)),
            ("ann", T(0, 5), T(1)),
            ("ann", T(3, 30), T(4)),
            (None, T(0, 50), T(1)),
        ],
    ),
    "rows of sessions": (
        ["name", "ts", "window_start", "window_end"],
        [
            ("ann", T(0, 5), T(0, 5), T(0, 35)),
            ("ann", T(3, 30), T(3, 30), T(4)),
            (None, T(0, 50), T(0, 50), T(1, 20)),
        ],
    ),
    "rows then groups": (
        ["window_start", "EXPR$1"],
        [
            (T(0), 20),
            (T(1), 14),
            (T(3), 10),
        ],
    ),
    "renamed windows": (
        ["a", "EXPR$1"],
        [
            (T(-1, 30), 4),
            (T(0), 10),
            (T(0, 30), 13),
            (T(1), 7),
            (T(3), 5),
            (T(3, 30), 5),
        ],
    ),
    "cascade": (
        ["window_start", "EXPR$1"],
        [
            (T(0), 7),
            (T(2), 1),
        ],
    ),
    "groups of groups": (
        ["window_start", "window_time", "EXPR$2"],
        [
            (T(0), T(0, 59, 999000), 2),
            (T(1), T(1, 59, 999000), 2),
            (T(3), T(3, 59, 999000), 1),
        ],
    ),
    "union": (
        ["window_start", "EXPR$1"],
        [
            (T(0), 4),
            (T(1), 3),
            (T(1), 3),
            (T(2), 3),
            (T(3), 1),
            (T(4), 1),
        ],
    ),
    "group window": (
        ["name", "EXPR$1", "e", "r", "EXPR$4"],
        [
            ("ann", T(0), T(1), T(0, 59, 999000), 2),
            ("ann", T(1), T(2), T(1, 59, 999000), 1),
            ("ann", T(3), T(4), T(3, 59, 999000), 1),
            ("bob", T(0), T(1), T(0, 59, 999000), 1),
            ("bob", T(1), T(2), T(1, 59, 999000), 2),
            (None, T(0), T(1), T(0, 59, 999000), 1),
        ],
    ),
    "group hop": (
        ["s", "e", "EXPR$2"],
        [
            (T(0), T(1), 10),
            (T(0, 30), T(1, 30), 13),
            (T(1), T(2), 7),
        ],
    ),
    "group session": (
        ["name", "s", "e", "r", "EXPR$4"],
        [
            ("ann", T(0, 40), T(1, 10), T(1, 9, 999000), 1),
            ("ann", T(0, 5), T(0, 35), T(0, 34, 999000), 1),
            ("ann", T(1, 15), T(1, 45), T(1, 44, 999000), 1),
            ("ann", T(3, 30), T(4), T(3, 59, 999000), 1),
            ("bob", T(0, 10), T(0, 40), T(0, 39, 999000), 1),
            ("bob", T(1), T(1, 40), T(1, 39, 999000), 2),
            (None, T(0, 50), T(1, 20), T(1, 19, 999000), 1),
        ],
    ),
    "group cascade": (
        ["s", "EXPR$1"],
        [
            (T(0), 7),
            (T(2), 1),
        ],
    ),
    "braces": (
        ["window_end", "EXPR$1", "EXPR$2", "EXPR$3"],
        [
            (T(1), 10, 10, "/a{0}/b{0}/b{0}/a"),
            (T(2), 7, 5, "/b{0}/c"),
            (T(4), 5, 5, "/c"),
        ],
    ),
    "only an aggregate": (
        ["EXPR$0"],
        [
            (1,),
            (3,),
            (4,),
        ],
    ),
}


class EachTime(WatermarkGenerator[Any]):
    """The watermark is the time of the last record."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class RecordsRead:
    """Counts records that epochs have read."""

    def __init__(self, records: int) -> None:
        self.left = records
        self.are_read = threading.Event()

    def __call__(self, progress: Any) -> None:
        self.left -= progress.records_in
        if self.left <= 0:
            self.are_read.set()


def environment(**settings: str) -> StreamTableEnvironment:
    configuration = Configuration()
    for key, value in {"execution.target": "local", "parallelism.default": "1", **settings}.items():
        configuration.set_string(key, value)
    return StreamTableEnvironment.create(
        StreamExecutionEnvironment.get_execution_environment(configuration)
    )


def with_clicks(folder: Path, **settings: str) -> StreamTableEnvironment:
    """An environment with the table clicks."""
    folder = folder / "clicks"
    folder.mkdir()
    rows = [dict(zip(NAMES, each, strict=True)) for each in CLICKS]
    lines = [json.dumps({**row, "ts": f"2024-01-01 {row['ts']}"}) for row in rows]
    (folder / "a.json").write_text("\n".join(lines))
    tables = environment(**settings)
    tables.execute_sql(
        "CREATE TABLE clicks (name STRING, url STRING, n INT, price DOUBLE, amount DECIMAL(10, 2), ok BOOLEAN, "
        "ts TIMESTAMP(3), at AS PROCTIME(), later AS ts, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'json')"
    )
    return tables


@pytest.fixture
def tables(tmp_path: Path) -> StreamTableEnvironment:
    return with_clicks(tmp_path)


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    with table.execute().collect() as rows:
        return sorted((tuple(row) for row in rows), key=str)


def names_of(table: Table) -> list[str]:
    return list(table.get_schema().get_field_names())


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_results_of_queries_over_windows(tmp_path: Path, name: str, mode: str) -> None:
    tables = with_clicks(tmp_path, **{"execution.runtime-mode": mode})
    names, rows = RESULTS[name]
    found = tables.sql_query(QUERIES[name])
    assert names_of(found) == names
    assert rows_of(found) == rows


def test_types_are_those_of_flink(tables: StreamTableEnvironment) -> None:
    found = tables.sql_query(
        "SELECT window_start, window_time, name, COUNT(*) AS c, SUM(n) AS s, SUM(amount) AS d, AVG(amount) AS a, "
        f"AVG(n) AS i, VAR_POP(amount) AS v, MAX(price) AS m FROM {TUMBLE} {WINDOW}, window_time, name"
    )
    assert [str(each.data_type) for each in found.columns] == [
        *("TIMESTAMP(3) NOT NULL", "TIMESTAMP(3) NOT NULL", "STRING", "BIGINT NOT NULL", "INT"),
        *("DECIMAL(38, 2)", "DECIMAL(38, 6)", "INT", "DECIMAL(38, 6)", "DOUBLE"),
    ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (f"SELECT url, COUNT(*) FROM {TUMBLE} {WINDOW}", "`url` is neither in GROUP BY nor in an"),
        (
            "SELECT TUMBLE_END(ts, INTERVAL '2' MINUTE) FROM clicks GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
            "TUMBLE_END.* has other arguments than TUMBLE",
        ),
        (
            "SELECT COUNT(*) FROM clicks GROUP BY TUMBLE(later, INTERVAL '1' MINUTE)",
            "TUMBLE needs a column of event time .* 'later' is TIMESTAMP.*WATERMARK FOR later",
        ),
        (
            "SELECT COUNT(*) FROM clicks GROUP BY TUMBLE(ts + INTERVAL '1' DAY, INTERVAL '1' MINUTE)",
            r"TUMBLE needs a time column, and got .*ts.* \+",
        ),
        (
            "SELECT COUNT(*) FROM clicks GROUP BY TUMBLE(ts, INTERVAL '1' MONTH)",
            "TUMBLE takes intervals of days or shorter units",
        ),
        (
            "SELECT COUNT(*) FROM clicks GROUP BY HOP(ts, INTERVAL '1' MINUTE)",
            "HOP takes the intervals SLIDE, SIZE, OFFSET, and got SLIDE",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' HOUR))",
            "offset must be smaller than the size",
        ),
        (
            "SELECT * FROM TABLE(CUMULATE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '7' SECOND, INTERVAL '1' MINUTE))",
            "size must be a multiple of the step",
        ),
        ("SELECT * FROM TABLE(TUMBLE(TABLE clicks))", "the argument TIMECOL is missing"),
        (
            "SELECT COUNT(*) FROM clicks GROUP BY SESSION(ts, INTERVAL '1' MINUTE, ts)",
            "there are too many arguments",
        ),
        (f"SELECT SUM(url) FROM {TUMBLE} {WINDOW}", r"SUM\(`url`\) takes a number, .* STRING"),
        (f"SELECT LISTAGG(n) FROM {TUMBLE} {WINDOW}", r"LISTAGG\(`n`\) takes a text"),
        (f"SELECT SUM(MAX(n)) FROM {TUMBLE} {WINDOW}", "an aggregate within an aggregate"),
        (
            f"SELECT APPROX_COUNT_DISTINCT(n) FROM {TUMBLE} {WINDOW}",
            r"the aggregate APPROX_DISTINCT\(`n`\) is not supported",
        ),
        (
            f"SELECT window_start, COUNT(*) FROM {TUMBLE} GROUP BY window_start",
            "TUMBLE is only supported in a query that groups by its windows.* for GROUP BY",
        ),
        (f"SELECT * FROM {TUMBLE} ORDER BY name", "TUMBLE is only supported .* for ORDER BY"),
        (
            f"SELECT COUNT(*) FROM {TUMBLE} GROUP BY window_start, window_end, ROLLUP(name)",
            "TUMBLE is only supported .* for GROUP BY",
        ),
        (
            f"SELECT COUNT(*) FROM {PROCESSING} WHERE window_end > ts {WINDOW}",
            "must not use window_start, window_end, window_time of windows in processing time",
        ),
    ],
)
def test_wrong_queries_are_refused(
    tables: StreamTableEnvironment, query: str, message: str
) -> None:
    with pytest.raises((GraphError, UnsupportedFeatureError), match=message):
        tables.sql_query(query)


def test_groups_without_windows_name_windows_as_the_alternative(
    tables: StreamTableEnvironment,
) -> None:
    tables.execute_sql("CREATE TABLE g (k INT, v INT) WITH ('connector' = 'datagen')")
    with pytest.raises(
        UnsupportedFeatureError, match=r"Group by a window such as TUMBLE.*key_by\(\.\.\.\)"
    ):
        tables.sql_query("SELECT k, SUM(v) FROM g GROUP BY k")


def test_a_sum_that_does_not_fit_fails(tables: StreamTableEnvironment) -> None:
    found = tables.sql_query(f"SELECT SUM(n + 2147483640) FROM {TUMBLE} {WINDOW}")
    with pytest.raises(
        Exception, match=r"SUM\(`n` \+ 2147483640\) is \d+, which does not fit into 32 bits"
    ):
        rows_of(found)


def test_collect_and_array_agg_give_maps_and_arrays(tables: StreamTableEnvironment) -> None:
    query = f"SELECT COLLECT(url), ARRAY_AGG(n) FROM {TUMBLE} {WINDOW}"
    assert rows_of(tables.sql_query(query)) == [
        ({"/a": 2, "/b": 2}, [4, None, -1, 7]),
        ({"/b": 1, "/c": 1}, [2, 2, 3]),
        ({"/c": 1}, [5]),
    ]


def test_functions_of_users_compute_keys_and_arguments(tables: StreamTableEnvironment) -> None:
    tables.create_temporary_function("twice", udf(lambda n: n and 2 * n, result_type="INT"))
    tables.create_temporary_function(
        "first", udf(lambda text: text and text[0], result_type="STRING")
    )
    query = f"SELECT first(name), SUM(twice(n)) FROM {TUMBLE} {WINDOW}, first(name)"
    assert rows_of(tables.sql_query(query)) == [
        *(("a", 10), ("a", 6), ("a", 6)),
        *(("b", 8), ("b", None), (None, 14)),
    ]


WINDOW_OF_MINUTES = Tumble.over(lit(1).minutes).on(col("ts")).alias("w")


@pytest.mark.parametrize(
    ("make", "names", "rows"),
    [
        (
            lambda clicks: (
                clicks.window(WINDOW_OF_MINUTES)
                .group_by(col("w"), col("name"))
                .select(col("name"), col("w").start, col("w").end, col("n").sum.alias("total"))
            ),
            ["name", "EXPR$0", "EXPR$1", "total"],
            [
                ("ann", T(0), T(1), 3),
                ("ann", T(1), T(2), 3),
                ("ann", T(3), T(4), 5),
                ("bob", T(0), T(1), None),
                ("bob", T(1), T(2), 4),
                (None, T(0), T(1), 7),
            ],
        ),
        (
            lambda clicks: (
                clicks.window(
                    Slide.over(lit(2).minutes).every(lit(1).minutes).on(clicks.ts).alias("w")
                )
                .group_by(col("w"))
                .select(col("n").max, col("w").end, col("n").sum + 1)
                .where(col("EXPR$0") > 5)
            ),
            ["EXPR$0", "EXPR$1", "_c2"],
            [(7, T(1), 11), (7, T(2), 18)],
        ),
        (
            lambda clicks: (
                clicks.window(Session.with_gap(lit(30).seconds).on(col("ts")).alias("w"))
                .group_by(col("name").upper_case.alias("u"), col("w"))
                .select(col("u"), col("w").rowtime.alias("r"), col("url").count.distinct.alias("c"))
            ),
            ["u", "r", "c"],
            [
                ("ANN", T(0, 34, 999000), 1),
                ("ANN", T(1, 44, 999000), 1),
                ("ANN", T(1, 9, 999000), 1),
                ("ANN", T(3, 59, 999000), 1),
                ("BOB", T(0, 39, 999000), 1),
                ("BOB", T(1, 39, 999000), 1),
                (None, T(1, 19, 999000), 1),
            ],
        ),
        (
            lambda clicks: (
                clicks.window(WINDOW_OF_MINUTES)
                .group_by(col("w"))
                .select(col("w").rowtime.alias("r"), col("url").list_agg("+").alias("urls"))
                .window(Tumble.over(lit(2).minutes).on(col("r")).alias("v"))
                .group_by(col("v"))
                .select(col("v").start.alias("s"), col("urls").first_value.alias("f"))
            ),
            ["s", "f"],
            [(T(0), "/a+/b+/b+/a"), (T(2), "/c")],
        ),
    ],
)
def test_windows_of_the_table_api(
    tables: StreamTableEnvironment,
    make: Callable[[Table], Table],
    names: list[str],
    rows: list[tuple[Any, ...]],
) -> None:
    found = make(tables.from_path("clicks"))
    assert names_of(found) == names
    assert rows_of(found) == rows


def test_wrong_windows_of_the_table_api_are_refused(tables: StreamTableEnvironment) -> None:
    clicks = tables.from_path("clicks")
    with pytest.raises(GraphError, match=r"the window is missing; add col\('w'\)"):
        clicks.window(WINDOW_OF_MINUTES).group_by(col("name"))
    with pytest.raises(GraphError, match=r"the window needs on\(\.\.\.\) and alias\(\.\.\.\)"):
        clicks.window(Tumble.over(lit(1).minutes)).group_by(col("w"))
    with pytest.raises(TypeError, match="the window"):
        clicks.window(lit(1).minutes)  # type: ignore[arg-type]


def test_times_of_a_stream_may_be_the_time_of_windows() -> None:
    tables = environment()
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps()
    stream = tables.stream_environment.from_collection(
        [("a", 1_000), ("b", 61_000), ("a", 59_000)], Types.TUPLE([Types.STRING(), Types.LONG()])
    ).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda row, _: row[1]))
    by_expression = tables.from_data_stream(stream, col("k"), col("v"), col("t").rowtime)
    schema = (
        Schema.new_builder()
        .column_by_expression("at", "TO_TIMESTAMP_LTZ(f1, 3)")
        .watermark("at", "at - INTERVAL '1' MINUTE")
        .build()
    )
    by_schema = tables.from_data_stream(stream, schema)
    for table, time in ((by_expression, "t"), (by_schema, "at")):
        found = tables.sql_query(
            f"SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE {table}, DESCRIPTOR({time}), "
            "INTERVAL '1' MINUTE)) GROUP BY window_start, window_end"
        )
        minute = datetime(1970, 1, 1, 0, 1)  # noqa: DTZ001 - TIMESTAMP has no zone
        assert rows_of(found) == [(minute, 2), (minute.replace(minute=2), 1)]
    times = tables.sql_query(
        f"SELECT TUMBLE_ROWTIME(at, INTERVAL '1' HOUR) FROM {by_schema} GROUP BY TUMBLE(at, INTERVAL '1' HOUR)"
    )
    hour = datetime(1970, 1, 1, 0, 59, 59, 999000, timezone.utc)
    assert rows_of(times) == [(hour,)]


def test_instants_of_a_stream_are_the_time_of_windows() -> None:
    """As in PyFlink's example tumble_window.py."""
    tables = environment()
    sales = [
        (1000, "Alice", 110.1),
        (4000, "Bob", 30.2),
        (3000, "Alice", 20.0),
        (7000, "Bob", 16.1),
    ]
    stream = tables.stream_environment.from_collection(
        [(Instant.of_epoch_milli(millis), *rest) for millis, *rest in sales],
        Types.ROW([Types.INSTANT(), Types.STRING(), Types.FLOAT()]),
    )
    schema = (
        Schema.new_builder()
        .column_by_expression("ts", "CAST(f0 AS TIMESTAMP(3))")
        .column("f1", DataTypes.STRING())
        .column("f2", DataTypes.FLOAT())
        .watermark("ts", "ts - INTERVAL '3' SECOND")
        .build()
    )
    table = tables.from_data_stream(stream, schema).alias("ts", "name", "price")
    found = (
        table.window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w"))
        .group_by(col("name"), col("w"))
        .select(col("name"), col("price").sum, col("w").start)
    )
    start = datetime(1970, 1, 1)  # noqa: DTZ001 - TIMESTAMP has no zone
    assert rows_of(found) == [
        ("Alice", pytest.approx(130.1), start),
        ("Bob", pytest.approx(16.1), start.replace(second=5)),
        ("Bob", pytest.approx(30.2), start),
    ]
    with tables.from_data_stream(stream).execute().collect() as rows:
        assert next(iter(rows))[0] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)


def test_windows_in_processing_time_are_planned(tables: StreamTableEnvironment) -> None:
    text = tables.explain_sql(
        "SELECT TUMBLE_PROCTIME(at, INTERVAL '1' MINUTE), COUNT(*) FROM clicks GROUP BY TUMBLE(at, INTERVAL '1' MINUTE)"
    )
    assert "AllWindow(TumblingProcessingTimeWindows(60000), ProcessingTimeTrigger" in text
    query = f"SELECT window_time, name, COUNT(*) FROM {PROCESSING} {WINDOW}, window_time, name"
    assert "-> select window_time, name" in tables.explain_sql(query)
    assert str(tables.sql_query(query).columns[0].data_type) == "TIMESTAMP_LTZ(3) NOT NULL"


def test_a_view_of_windows_is_described_and_shown(tables: StreamTableEnvironment) -> None:
    tables.execute_sql(f"CREATE VIEW w AS SELECT name, window_end FROM {SESSION}")
    with tables.execute_sql("SHOW CREATE VIEW w").collect() as rows:
        ((text,),) = rows
    assert "SESSION(TABLE `clicks` PARTITION BY (`name`), DESCRIPTOR(`ts`), INTERVAL" in text
    assert str(tables.from_path("w").columns[1].data_type) == "TIMESTAMP(3) NOT NULL"


def test_values_that_cannot_be_compared_are_refused(tables: StreamTableEnvironment) -> None:
    for call in ("MAX", "COUNT(DISTINCT", "COLLECT"):
        end = ")" * call.count("(")
        with pytest.raises(GraphError, match=r"takes values that can be compared, and got ARRAY"):
            tables.sql_query(f"SELECT {call}(ARRAY[n]){end} FROM {TUMBLE} {WINDOW}")


def test_in_batch_mode_any_timestamp_is_the_time_of_windows(tmp_path: Path) -> None:
    tables = with_clicks(tmp_path, **{"execution.runtime-mode": "BATCH"})
    clicks = tables.from_path("clicks")
    window = Tumble.over(lit(2).minutes).on(col("later")).alias("w")
    for found in (
        tables.sql_query(
            f"SELECT window_end, SUM(n) FROM {TUMBLE.replace('ts', 'later').replace('1', '2')} {WINDOW}"
        ),
        tables.sql_query(
            "SELECT TUMBLE_END(later, INTERVAL '2' MINUTE), SUM(n) FROM clicks GROUP BY TUMBLE(later, INTERVAL '2' MINUTE)"
        ),
        clicks.window(window).group_by(col("w")).select(col("w").end, col("n").sum),
    ):
        assert rows_of(found) == [(T(2), 17), (T(4), 5)]


def test_late_rows_are_dropped() -> None:
    tables = environment()
    rows = [Row("a", T(0, 1)), Row("a", T(5)), Row("a", T(0, 2)), Row("a", T(5, 1))]
    of = Types.ROW_NAMED(["k", "t"], [Types.STRING(), Types.SQL_TIMESTAMP()])
    strategy: Any = WatermarkStrategy.for_generator(lambda _: EachTime())
    stream = tables.stream_environment.from_collection(rows, of).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda row, _: epoch_ms(row[1]))
    )
    schema = Schema.new_builder().column("k", "STRING").column("t", "TIMESTAMP(3)")
    table = tables.from_data_stream(stream, schema.watermark("t", "SOURCE_WATERMARK()").build())
    found = tables.sql_query(
        f"SELECT COUNT(*) FROM {table} GROUP BY TUMBLE(t, INTERVAL '1' MINUTE), k"
    )
    assert rows_of(found) == [(1,), (2,)]


def test_windows_of_an_unbounded_table_continue_from_a_savepoint(tmp_path: Path) -> None:
    source, sink = tmp_path / "source", tmp_path / "sink"
    source.mkdir()

    def run(file: str, rows: list[tuple[str, int, str]], **settings: str) -> str:
        lines = [{"k": k, "n": n, "ts": f"2024-01-01 00:{time}"} for k, n, time in rows]
        (source / file).write_text("\n".join(map(json.dumps, lines)))
        tables = environment(
            **{
                "execution.checkpointing.dir": str(tmp_path / f"checkpoints of {file}"),
                "execution.checkpointing.interval": "50 ms",
                **settings,
            }
        )
        tables.execute_sql(
            "CREATE TABLE s (k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = "
            f"'filesystem', 'format' = 'json', 'path' = '{source}', 'source.monitor-interval' = '10 ms')"
        )
        tables.execute_sql(
            "CREATE TABLE t (k STRING, s TIMESTAMP(3), c BIGINT, n INT, d BIGINT, l STRING) WITH ('connector' = "
            f"'filesystem', 'format' = 'json', 'path' = '{sink}')"
        )
        read = RecordsRead(len(rows))
        tables.stream_environment.add_epoch_listener(read)
        client = tables.execute_sql(
            "INSERT INTO t SELECT k, window_start, COUNT(*), SUM(n), COUNT(DISTINCT n), LISTAGG(k) FROM "
            "TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)) "
            "GROUP BY window_start, window_end, k"
        ).get_job_client()
        assert client is not None
        assert read.are_read.wait(60)
        saved = client.stop_with_savepoint(False, str(tmp_path / f"saved {file}")).result(60)
        client.get_job_execution_result().result(60)
        return str(saved)

    saved = run("a.json", [("a", 1, "00:10"), ("b", 2, "00:20"), ("a", 1, "01:10")])
    resumed = {"execution.state-recovery.path": saved}
    run("b.json", [("a", 5, "01:20"), ("b", 3, "10:00")], **resumed)
    found = [
        json.loads(line) for each in sink.rglob("part-*") for line in each.read_text().splitlines()
    ]
    start = "2024-01-01 00:00:00"
    assert sorted(found, key=str) == [
        {"k": "a", "s": start, "c": 1, "n": 1, "d": 1, "l": "a"},
        {"k": "a", "s": start, "c": 3, "n": 7, "d": 2, "l": "a,a,a"},
        {"k": "b", "s": start, "c": 1, "n": 2, "d": 1, "l": "b"},
        {"k": "b", "s": start, "c": 1, "n": 2, "d": 1, "l": "b"},
    ]
