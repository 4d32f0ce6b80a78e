"""Expressions of the Table API; the names and values of their columns are PyFlink 2.3's."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from opchain.common import Configuration, Row
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.table import DataTypes, StreamTableEnvironment, Table
from opchain.table.expression import Expression, TimeIntervalUnit, TimePointUnit
from opchain.table.expressions import (
    and_,
    array,
    atan2,
    call,
    call_sql,
    coalesce,
    col,
    concat,
    concat_ws,
    current_date,
    current_timestamp,
    date_format,
    e,
    from_unixtime,
    if_then_else,
    lit,
    local_timestamp,
    log,
    map_,
    negative,
    not_,
    null_of,
    or_,
    pi,
    rand,
    row,
    timestamp_diff,
    to_date,
    to_timestamp,
    to_timestamp_ltz,
    unix_timestamp,
    uuid,
)

COLUMNS = {
    "a": DataTypes.INT(),
    "b": DataTypes.BIGINT(),
    "s": DataTypes.STRING(),
    "p": DataTypes.STRING(),
    "d": DataTypes.DOUBLE(),
    "f": DataTypes.BOOLEAN(),
    "m": DataTypes.DECIMAL(10, 2),
    "ts": DataTypes.TIMESTAMP(3),
    "dt": DataTypes.DATE(),
    "arr": DataTypes.ARRAY(DataTypes.INT()),
    "mp": DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()),
    "r": DataTypes.ROW(
        [DataTypes.FIELD("x", DataTypes.INT()), DataTypes.FIELD("y", DataTypes.STRING())]
    ),
    "n": DataTypes.INT(),
    "tx": DataTypes.STRING(),
}
AT = datetime(2024, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - SQL's TIMESTAMP has no zone


def at(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001 - likewise


FULL = (7, 3, "Hello", " x ", 1.5, True, Decimal("12.34"), AT, AT.date(), [1, 2, 3], {"k": 1})
ROWS = [
    (*FULL, Row(5, "in"), None, "2024-01-02 03:04:05"),
    (-7, 2, None, None, -2.5, False, *[None] * 8),
]


@pytest.fixture
def table() -> Table:
    configuration = Configuration().set_string("execution.target", "local")
    tables = StreamTableEnvironment.create()
    tables.get_config().get_configuration().add_all(configuration)
    fields = [DataTypes.FIELD(name, of) for name, of in COLUMNS.items()]
    return tables.from_elements(ROWS, DataTypes.ROW(fields))


@pytest.fixture
def small(table: Table) -> Table:
    return table.select(col("a"), col("b"), col("s"))


def columns_of(table: Table) -> dict[str, str]:
    return {name: str(of) for name, of in table.columns}


def rows_of(table: Table) -> list[list[Any]]:
    with table.execute().collect() as rows:
        return [list(each) for each in rows]


CASES: list[tuple[Expression, str, str, list[Any]]] = [
    (col("a"), "a", "INT", [7, -7]),
    (col("a").alias("z"), "z", "INT", [7, -7]),
    (lit(1), "_c0", "INT", [1, 1]),
    (lit(3000000000), "_c0", "BIGINT", [3000000000, 3000000000]),
    (lit("x"), "_c0", "STRING NOT NULL", ["x", "x"]),
    (lit(1.5), "_c0", "DOUBLE", [1.5, 1.5]),
    (lit(True), "_c0", "BOOLEAN", [True, True]),
    (lit(None, DataTypes.INT()), "_c0", "INT", [None, None]),
    (lit(Decimal("1.25")), "_c0", "DECIMAL(3, 2)", [Decimal("1.25"), Decimal("1.25")]),
    (lit(-5), "_c0", "INT", [-5, -5]),
    (col("a") + 1, "_c0", "INT", [8, -6]),
    (1 + col("a"), "_c0", "INT", [8, -6]),
    (col("a") - col("b"), "_c0", "BIGINT", [4, -9]),
    (10 - col("a"), "_c0", "INT", [3, 17]),
    (col("a") * 2, "_c0", "INT", [14, -14]),
    (2 * col("d"), "_c0", "DOUBLE", [3.0, -5.0]),
    (col("a") / 2, "_c0", "INT", [3, -3]),
    (100 / col("a"), "_c0", "INT", [14, -14]),
    (col("a") / col("b"), "_c0", "BIGINT", [2, -3]),
    (col("d") / 2, "_c0", "DOUBLE", [0.75, -1.25]),
    (col("a") % 2, "_c0", "INT", [1, -1]),
    (10 % col("a"), "_c0", "INT", [3, 3]),
    (col("a") ** 2, "_c0", "DOUBLE", [49.0, 49.0]),
    (2 ** col("a"), "_c0", "DOUBLE", [128.0, 0.0078125]),
    (-col("a"), "_c0", "INT", [-7, 7]),
    (col("m") + 1, "_c0", "DECIMAL(13, 2)", [Decimal("13.34"), None]),
    (col("m") * col("m"), "_c0", "DECIMAL(21, 4)", [Decimal("152.2756"), None]),
    (col("m") / 3, "_c0", "DECIMAL(21, 13)", [Decimal("4.1133333333333"), None]),
    (col("m") + 1.5, "_c0", "DOUBLE", [13.84, None]),
    (col("a") + 1.5, "_c0", "DOUBLE", [8.5, -5.5]),
    (col("s") + "!", "_c0", "STRING", ["Hello!", None]),
    (col("s") + 1, "_c0", "STRING", ["Hello1", None]),
    (col("s") + col("a"), "_c0", "STRING", ["Hello7", None]),
    (col("a") > 1, "_c0", "BOOLEAN", [True, False]),
    (col("a") > 1, "_c0", "BOOLEAN", [True, False]),
    (col("a") >= col("b"), "_c0", "BOOLEAN", [True, False]),
    (col("a") == 7, "_c0", "BOOLEAN", [True, False]),
    (col("a") != 7, "_c0", "BOOLEAN", [False, True]),
    (col("s") == "Hello", "_c0", "BOOLEAN", [True, None]),
    (col("n") == 1, "_c0", "BOOLEAN", [None, None]),
    ((col("a") > 1) & (col("f")), "_c0", "BOOLEAN", [True, False]),
    ((col("a") > 1) | (col("n") > 1), "_c0", "BOOLEAN", [True, None]),
    (~(col("a") > 1), "_c0", "BOOLEAN", [False, True]),
    (col("f") & True, "_c0", "BOOLEAN", [True, False]),
    (and_(col("f"), col("a") > 1, True), "_c0", "BOOLEAN", [True, False]),
    (or_(col("f"), col("a") > 1), "_c0", "BOOLEAN", [True, False]),
    (not_(col("f")), "_c0", "BOOLEAN", [False, True]),
    (col("s").is_null, "_c0", "BOOLEAN", [False, True]),
    (col("s").is_not_null, "_c0", "BOOLEAN", [True, False]),
    (col("f").is_true, "_c0", "BOOLEAN", [True, False]),
    (col("f").is_false, "_c0", "BOOLEAN", [False, True]),
    (col("f").is_not_true, "_c0", "BOOLEAN", [False, True]),
    (col("f").is_not_false, "_c0", "BOOLEAN", [True, False]),
    ((col("n") > 1).is_true, "_c0", "BOOLEAN", [False, False]),
    ((col("n") > 1).is_not_true, "_c0", "BOOLEAN", [True, True]),
    (col("s").like("He%"), "_c0", "BOOLEAN", [True, None]),
    (col("s").similar("H.*"), "_c0", "BOOLEAN", [True, None]),
    (col("s").upper_case, "_c0", "STRING", ["HELLO", None]),
    (col("s").lower_case, "_c0", "STRING", ["hello", None]),
    (col("s").init_cap, "_c0", "STRING", ["Hello", None]),
    (col("p").trim(), "_c0", "STRING", ["x", None]),
    (col("p").trim("x"), "_c0", "STRING", [" x ", None]),
    (col("p").trim_leading(), "_c0", "STRING", ["x ", None]),
    (col("p").trim_trailing(), "_c0", "STRING", [" x", None]),
    (col("p").ltrim(), "_c0", "STRING", ["x ", None]),
    (col("p").rtrim(), "_c0", "STRING", [" x", None]),
    (col("p").btrim(), "_c0", "STRING", ["x", None]),
    (col("p").btrim(" x"), "_c0", "STRING", ["", None]),
    (col("s").substring(2), "_c0", "STRING", ["ello", None]),
    (col("s").substring(2, 3), "_c0", "STRING", ["ell", None]),
    (col("s").substr(2, 3), "_c0", "STRING", ["ell", None]),
    (col("s").char_length, "_c0", "INT", [5, None]),
    (col("s").replace("l", "L"), "_c0", "STRING", ["HeLLo", None]),
    (col("s").position("Hello world"), "_c0", "INT", [1, None]),
    (lit("l").position(col("s")), "_c0", "INT", [3, None]),
    (col("s").lpad(8, "*"), "_c0", "STRING", ["***Hello", None]),
    (col("s").rpad(8, "*"), "_c0", "STRING", ["Hello***", None]),
    (col("s").regexp("l+"), "_c0", "BOOLEAN", [True, None]),
    (col("s").regexp_replace("l+", "_"), "_c0", "STRING", ["He_o", None]),
    (col("s").regexp_extract("(l+)(o)", 2), "_c0", "STRING", ["o", None]),
    (col("s").regexp_extract("(l+)(o)"), "_c0", "STRING", ["llo", None]),
    (col("s").to_base64, "_c0", "STRING", ["SGVsbG8=", None]),
    (col("s").left(2), "_c0", "STRING", ["He", None]),
    (col("s").right(2), "_c0", "STRING", ["lo", None]),
    (col("s").instr("l"), "_c0", "INT", [3, None]),
    (col("s").locate("Hello Hello"), "_c0", "INT", [1, None]),
    (col("s").locate("Hello Hello", 3), "_c0", "INT", [7, None]),
    (lit("l").locate(col("s")), "_c0", "INT", [3, None]),
    (lit("l").locate(col("s"), 4), "_c0", "INT", [4, None]),
    (col("s").repeat(2), "_c0", "STRING", ["HelloHello", None]),
    (col("s").reverse, "_c0", "STRING", ["olleH", None]),
    (col("s").split_index("l", 0), "_c0", "STRING", ["He", None]),
    (col("s").md5, "_c0", "STRING", ["8b1a9953c4611296a827abf8c47804d7", None]),
    (col("s").concat("!"), "_c0", "STRING", ["Hello!", None]),
    (col("s").starts_with("He"), "_c0", "BOOLEAN", [True, None]),
    (col("s").ends_with("lo"), "_c0", "BOOLEAN", [True, None]),
    (col("a").abs, "_c0", "INT", [7, 7]),
    (col("d").abs, "_c0", "DOUBLE", [1.5, 2.5]),
    (col("m").abs, "_c0", "DECIMAL(10, 2)", [Decimal("12.34"), None]),
    (col("a").sign, "_c0", "INT", [1, -1]),
    (col("d").round(0), "_c0", "DOUBLE", [2.0, -3.0]),
    (col("m").round(1), "_c0", "DECIMAL(10, 1)", [Decimal("12.3"), None]),
    (col("a").round(-1), "_c0", "INT", [10, -10]),
    (col("d").floor(), "_c0", "DOUBLE", [1.0, -3.0]),
    (col("d").ceil(), "_c0", "DOUBLE", [2.0, -2.0]),
    (col("m").floor(), "_c0", "DECIMAL(10, 0)", [Decimal(12), None]),
    (col("m").ceil(), "_c0", "DECIMAL(10, 0)", [Decimal(13), None]),
    (col("a").floor(), "_c0", "INT", [7, -7]),
    (col("d").exp, "_c0", "DOUBLE", [4.4816890703380645, 0.0820849986238988]),
    (col("d").abs.log10, "_c0", "DOUBLE", [0.17609125905568124, 0.3979400086720376]),
    (col("d").abs.log2, "_c0", "DOUBLE", [0.5849625007211562, 1.3219280948873624]),
    (col("d").abs.log(), "_c0", "DOUBLE", [0.4054651081081644, 0.9162907318741551]),
    (col("d").abs.log(2), "_c0", "DOUBLE", [0.5849625007211562, 1.3219280948873624]),
    (col("d").cos, "_c0", "DOUBLE", [0.0707372016677029, -0.8011436155469337]),
    (col("d").tan, "_c0", "DOUBLE", [14.101419947171719, 0.7470222972386603]),
    (lit(0.5).asin, "_c0", "DOUBLE", [0.5235987755982989, 0.5235987755982989]),
    (lit(0.5).acos, "_c0", "DOUBLE", [1.0471975511965979, 1.0471975511965979]),
    (col("d").atan, "_c0", "DOUBLE", [0.982793723247329, -1.1902899496825317]),
    (col("d").degrees, "_c0", "DOUBLE", [85.94366926962348, -143.2394487827058]),
    (col("d").radians, "_c0", "DOUBLE", [0.026179938779914945, -0.04363323129985824]),
    (col("d").abs.sqrt, "_c0", "DOUBLE", [1.224744871391589, 1.5811388300841898]),
    (col("a").abs.sqrt, "_c0", "DOUBLE", [2.6457513110645907, 2.6457513110645907]),
    (
        col("a").bin,
        "_c0",
        "STRING",
        ["111", "1111111111111111111111111111111111111111111111111111111111111001"],
    ),
    (col("a").hex, "_c0", "STRING", ["7", "FFFFFFFFFFFFFFF9"]),
    (col("s").hex, "_c0", "STRING", ["48656C6C6F", None]),
    (col("d").truncate(0), "_c0", "DOUBLE", [1.0, -2.0]),
    (col("m").truncate(1), "_c0", "DECIMAL(10, 1)", [Decimal("12.3"), None]),
    (col("a").between(1, 10), "_c0", "BOOLEAN", [True, False]),
    (col("a").not_between(1, 10), "_c0", "BOOLEAN", [False, True]),
    (col("a").in_(1, 7), "_c0", "BOOLEAN", [True, False]),
    (col("s").in_("Hello", "x"), "_c0", "BOOLEAN", [True, None]),
    ((col("a") > 1).then("yes", "no"), "_c0", "STRING NOT NULL", ["yes", "no"]),
    ((col("n") > 1).then(1, 2), "_c0", "INT", [2, 2]),
    ((col("a") > 1).then(col("a"), 0), "_c0", "INT", [7, 0]),
    (col("n").if_null(5), "_c0", "INT", [5, 5]),
    (col("s").if_null("none"), "_c0", "STRING", ["Hello", "none"]),
    (col("a").if_null(0), "_c0", "INT", [7, -7]),
    (col("a").cast(DataTypes.STRING()), "a-STRING", "STRING", ["7", "-7"]),
    (col("a").cast(DataTypes.BIGINT()), "a-BIGINT", "BIGINT", [7, -7]),
    (col("d").cast(DataTypes.INT()), "d-INT", "INT", [1, -2]),
    (col("d").cast(DataTypes.STRING()), "d-STRING", "STRING", ["1.5", "-2.5"]),
    (col("s").try_cast(DataTypes.INT()), "_c0", "INT", [None, None]),
    (col("ts").cast(DataTypes.STRING()), "ts-STRING", "STRING", ["2024-01-02 03:04:05.678", None]),
    (col("r").get("x"), "r$x", "INT", [5, None]),
    (col("r").get(0), "r$_0", "INT", [5, None]),
    (col("r").get("y").alias("q"), "q", "STRING", ["in", None]),
    (col("r").x, "r$x", "INT", [5, None]),
    (col("arr").at(1), "_c0", "INT", [1, None]),
    (col("arr")[1], "_c0", "INT", [1, None]),
    (col("arr").at(9), "_c0", "INT", [None, None]),
    (col("mp").at("k"), "_c0", "INT", [1, None]),
    (col("arr").cardinality, "_c0", "INT", [3, None]),
    (col("arr").array_contains(2), "_c0", "BOOLEAN", [True, None]),
    (lit("2024-01-02").to_date, "_c0", "DATE", [date(2024, 1, 2), date(2024, 1, 2)]),
    (lit("03:04:05").to_time, "_c0", "TIME(0)", [time(3, 4, 5), time(3, 4, 5)]),
    (
        col("tx").to_timestamp,
        "tx-TIMESTAMP(3)",
        "TIMESTAMP(3)",
        [at(2024, 1, 2, 3, 4, 5), None],
    ),
    (to_timestamp(col("tx")), "_c0", "TIMESTAMP(3)", [at(2024, 1, 2, 3, 4, 5), None]),
    (to_date("2024-01-02"), "_c0", "DATE", [date(2024, 1, 2), date(2024, 1, 2)]),
    (to_date("2024/01/02", "yyyy/MM/dd"), "_c0", "DATE", [date(2024, 1, 2), date(2024, 1, 2)]),
    (
        to_timestamp("2024/01/02", "yyyy/MM/dd"),
        "_c0",
        "TIMESTAMP(3)",
        [at(2024, 1, 2, 0, 0), at(2024, 1, 2, 0, 0)],
    ),
    (date_format(col("ts"), "yyyy-MM"), "_c0", "STRING", ["2024-01", None]),
    (from_unixtime(44), "_c0", "STRING", ["1970-01-01 00:00:44", "1970-01-01 00:00:44"]),
    (from_unixtime(44, "yyyy"), "_c0", "STRING", ["1970", "1970"]),
    (unix_timestamp("2024-01-02 03:04:05"), "_c0", "BIGINT", [1704164645, 1704164645]),
    (col("ts").extract(TimeIntervalUnit.YEAR), "_c0", "BIGINT", [2024, None]),
    (col("ts").extract(TimeIntervalUnit.WEEK), "_c0", "BIGINT", [1, None]),
    (col("dt").extract(TimeIntervalUnit.MONTH), "_c0", "BIGINT", [1, None]),
    (
        col("ts").floor(TimeIntervalUnit.HOUR),
        "_c0",
        "TIMESTAMP(3)",
        [at(2024, 1, 2, 3, 0), None],
    ),
    (
        col("ts").ceil(TimeIntervalUnit.DAY),
        "_c0",
        "TIMESTAMP(3)",
        [at(2024, 1, 3, 0, 0), None],
    ),
    (
        col("ts") + lit(2).hours,
        "_c0",
        "TIMESTAMP(3)",
        [at(2024, 1, 2, 5, 4, 5, 678000), None],
    ),
    (
        col("ts") - lit(2).days,
        "_c0",
        "TIMESTAMP(3)",
        [at(2023, 12, 31, 3, 4, 5, 678000), None],
    ),
    (
        col("ts") + lit(1).month,
        "_c0",
        "TIMESTAMP(3)",
        [at(2024, 2, 2, 3, 4, 5, 678000), None],
    ),
    (
        col("ts") + lit(90).seconds,
        "_c0",
        "TIMESTAMP(3)",
        [at(2024, 1, 2, 3, 5, 35, 678000), None],
    ),
    (
        col("ts") + lit(5).millis,
        "_c0",
        "TIMESTAMP(3)",
        [at(2024, 1, 2, 3, 4, 5, 683000), None],
    ),
    (col("ts") + lit(1).week, "_c0", "TIMESTAMP(3)", [at(2024, 1, 9, 3, 4, 5, 678000), None]),
    (col("dt") + lit(1).day, "_c0", "DATE", [date(2024, 1, 3), None]),
    (concat("a", col("s"), "b"), "_c0", "STRING", ["aHellob", None]),
    (concat_ws(",", "a", col("s"), "b"), "_c0", "STRING", ["a,Hello,b", "a,b"]),
    (if_then_else(col("a") > 1, "yes", "no"), "_c0", "STRING NOT NULL", ["yes", "no"]),
    (if_then_else(col("a") > 1, lit(1), null_of(DataTypes.INT())), "_c0", "INT", [1, None]),
    (null_of(DataTypes.INT()), "_c0", "INT", [None, None]),
    (null_of(DataTypes.STRING()), "_c0", "STRING", [None, None]),
    (
        row(1, "abc"),
        "_c0",
        "ROW<`f0` INT, `f1` STRING NOT NULL>",
        [Row(1, "abc"), Row(1, "abc")],
    ),
    (array(1, col("a")), "_c0", "ARRAY<INT>", [[1, 7], [1, -7]]),
    (array(1, 2, 3), "_c0", "ARRAY<INT>", [[1, 2, 3], [1, 2, 3]]),
    (map_("k", col("a")), "_c0", "MAP<STRING NOT NULL, INT>", [{"k": 7}, {"k": -7}]),
    (pi(), "_c0", "DOUBLE", [3.141592653589793, 3.141592653589793]),
    (e(), "_c0", "DOUBLE", [2.718281828459045, 2.718281828459045]),
    (atan2(col("d"), 1), "_c0", "DOUBLE", [0.982793723247329, -1.1902899496825317]),
    (negative(col("a")), "_c0", "INT", [-7, 7]),
    (log(100.0), "_c0", "DOUBLE", [4.605170185988092, 4.605170185988092]),
    (log(10, 100), "_c0", "DOUBLE", [0.5, 0.5]),
    (log(col("d").abs), "_c0", "DOUBLE", [0.4054651081081644, 0.9162907318741551]),
    (log(col("d").abs, 2), "_c0", "DOUBLE", [0.5849625007211562, 1.3219280948873624]),
    (call_sql("a + 1"), "_c0", "INT", [8, -6]),
    (call_sql("UPPER(s)"), "_c0", "STRING", ["HELLO", None]),
    (call_sql("CASE WHEN a > 1 THEN 'x' ELSE 'y' END"), "_c0", "STRING NOT NULL", ["x", "y"]),
    (call("UPPER", col("s")), "_c0", "STRING", ["HELLO", None]),
    (call("abs", col("a")), "_c0", "INT", [7, 7]),
    (call("CONCAT", col("s"), "!"), "_c0", "STRING", ["Hello!", None]),
    (lit('{"a": 1}').is_json(), "_c0", "BOOLEAN", [True, True]),
    (lit('{"a": 1}').json_exists("$.a"), "_c0", "BOOLEAN", [True, True]),
    (lit('{"a": 1}').json_value("$.a"), "_c0", "STRING", ["1", "1"]),
    (lit('{"a": 1}').json_value("$.a", DataTypes.INT()), "_c0", "INT", [1, 1]),
    (col("a").alias("z") + 1, "_c0", "INT", [8, -6]),
    (lit("a") == lit("b"), "_c0", "BOOLEAN", [False, False]),
    (lit(1) + lit(2), "_c0", "INT", [3, 3]),
    (lit(1).cast(DataTypes.DOUBLE()), "_c0", "DOUBLE", [1.0, 1.0]),
    (col("f").cast(DataTypes.STRING()), "f-STRING", "STRING", ["TRUE", "FALSE"]),
    (col("s") > "A", "_c0", "BOOLEAN", [True, None]),
    (col("a") == 7.0, "_c0", "BOOLEAN", [True, False]),
    (col("d") > 1, "_c0", "BOOLEAN", [True, False]),
]


@pytest.mark.parametrize(
    ("expression", "name", "of", "values"), CASES, ids=[str(case[0]) for case in CASES]
)
def test_expressions_have_pyflinks_names_types_and_values(
    expression: Expression, name: str, of: str, values: list[Any], table: Table
) -> None:
    found = table.select(expression)
    assert columns_of(found) == {name: of}
    assert rows_of(found) == [[value] for value in values]


@pytest.mark.parametrize(
    "expression",
    [
        *(rand(), uuid(), current_date(), current_timestamp(), local_timestamp()),
        *(coalesce(col("n"), 1), to_timestamp_ltz(1000, 3), row(1, col("s")), unix_timestamp()),
        *(
            lit(date(2024, 1, 2)),
            lit(AT),
            lit([1, 2]),
            lit(1, DataTypes.BIGINT()),
            lit(float("inf")),
        ),
        timestamp_diff(TimePointUnit.DAY, col("ts"), AT),
    ],
    ids=str,
)
def test_each_supported_expression_has_a_value(expression: Expression, table: Table) -> None:
    assert all(value is not None for (value,) in rows_of(table.select(expression))[:1])


def test_a_star_selects_all_columns_and_unnamed_columns_are_numbered(small: Table) -> None:
    assert list(columns_of(small.select(col("*"), col("a") + 1))) == ["a", "b", "s", "_c3"]
    assert rows_of(small.select(col("a") + 1, col("b"), lit(1))) == [[8, 3, 1], [-6, 2, 1]]


def test_a_table_has_its_columns_as_attributes(small: Table) -> None:
    assert rows_of(small.where(small.a > 1).select(small.a + 1, small.s)) == [[8, "Hello"]]


def test_methods_of_a_table_add_replace_rename_and_drop_columns(small: Table) -> None:
    added = small.add_columns((col("a") + 1).alias("c"), lit("x"))
    assert list(columns_of(added)) == ["a", "b", "s", "c", "_c4"]
    replaced = small.add_or_replace_columns((col("a") + 1).alias("a"), lit(1).alias("q"))
    assert rows_of(replaced) == [[8, 3, "Hello", 1], [-6, 2, None, 1]]
    renamed = small.rename_columns(col("a").alias("x"), col("s").alias("y"))
    assert list(columns_of(renamed)) == ["x", "b", "y"]
    assert rows_of(renamed.drop_columns(col("x"), renamed.y)) == [[3], [2]]


def test_union_all_of_tables_has_common_column_types(small: Table) -> None:
    union = small.union_all(small.select(col("b"), col("a"), col("s")))
    assert columns_of(union) == {"a": "BIGINT", "b": "BIGINT", "s": "STRING"}
    assert sorted(each[0] for each in rows_of(union)) == [-7, 2, 3, 7]


def test_a_table_with_expressions_can_be_used_in_sql(small: Table) -> None:
    assert small.environment is not None
    table = small.select((col("a") * 2).alias("c"))
    assert rows_of(small.environment.sql_query(f"SELECT c + 1 FROM {table} WHERE c > 0")) == [[15]]


def test_a_plan_shows_the_condition_and_the_columns(small: Table) -> None:
    plan = small.where((col("a") > 1) & col("s").like("H%")).select(col("a") * 2).explain()
    assert "where (a > 1) AND (s LIKE 'H%')" in plan
    assert "select _c0" in plan


def test_an_error_names_the_call_its_line_and_the_columns(small: Table) -> None:
    with pytest.raises(
        GraphError,
        match=r"Table\.select\(\) \(test_expression.py:\d+\): there is no column 'c'; .* a, b, s",
    ):
        small.select(col("c"))
    with pytest.raises(
        GraphError, match=r"Table\.filter\(\) .* a is INT; a condition is a BOOLEAN"
    ):
        small.filter(col("a"))
    with pytest.raises(GraphError, match=r"two columns would have the name 'a'; .* \.alias"):
        small.select(col("a"), col("a"))
    with pytest.raises(GraphError, match=r"add_columns\(\) .* the name 'a'"):
        small.add_columns(col("a"))
    with pytest.raises(GraphError, match=r"takes col\('old'\)\.alias\('new'\), and got a"):
        small.rename_columns(col("a"))
    with pytest.raises(GraphError, match=r"drop_columns\(\) .* there is no column 'q'"):
        small.drop_columns(col("q"))
    with pytest.raises(
        GraphError, match=r"UNION ALL: the first query has 3 columns, and the second one 1"
    ):
        small.union_all(small.select(col("b")))
    with pytest.raises(GraphError, match=r"STRING .* are compared|are compared; CAST"):
        small.select(col("a") == "7")
    with pytest.raises(TypeError, match=r"'b' is a str; pass col\('b'\)"):
        small.select(col("a"), "b")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="neither an expression nor a literal"):
        _ = col("a") + object()
    with pytest.raises(GraphError, match="an interval is a whole number"):
        _ = col("a").days


def test_unsupported_expressions_are_refused_with_an_alternative(small: Table) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"Expression\.elt\(\) .* sql_query\(\)"):
        small.select(col("a").elt)
    with pytest.raises(
        UnsupportedFeatureError, match=r"select\(\) \(test_exp.*FIRST_VALUE\(a\) is not"
    ):
        small.select(call("FIRST_VALUE", col("a")))
    with pytest.raises(GraphError, match=r"a: distinct follows an aggregate"):
        _ = col("a").distinct
    with pytest.raises(UnsupportedFeatureError, match="the function NOSUCH is not supported"):
        small.select(call("nosuch", col("a")))
