"""Every type of Spark is converted in both directions, and partitions are assigned in contiguous runs."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Row, Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError
from opchain.runtime.spark.dataframes import arrow_partitions, schema_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

UTC = timezone.utc

TYPES: list[tuple[str, str, Any]] = [
    ("boolean", "true", True),
    ("tinyint", "-128Y", -128),
    ("smallint", "32767S", 32767),
    ("int", "-2147483648", -(2**31)),
    ("bigint", "9223372036854775807L", 2**63 - 1),
    ("float", "1.5F", 1.5),
    ("double", "-0.1D", -0.1),
    ("double", "double('Infinity')", float("inf")),
    ("decimal(10,2)", "-12345678.90BD", Decimal("-12345678.90")),
    (
        "decimal(38,18)",
        "cast('12345678901234567890.123456789012345678' as decimal(38,18))",
        Decimal("12345678901234567890.123456789012345678"),
    ),
    ("string", "'grüße \U0001f642'", "grüße \U0001f642"),
    ("char(3)", "cast('abc' as char(3))", "abc"),
    ("varchar(5)", "cast('ab' as varchar(5))", "ab"),
    ("binary", "X'00FF'", b"\x00\xff"),
    ("date", "date'0001-01-01'", date(1, 1, 1)),
    ("date", "date'9999-12-31'", date(9999, 12, 31)),
    (
        "timestamp",
        "timestamp'1969-12-31 23:59:59.999999 Europe/Berlin'",
        datetime(1969, 12, 31, 22, 59, 59, 999999, tzinfo=UTC),
    ),
    (
        "timestamp",
        "timestamp'2024-07-01 12:00:00+02:00'",
        datetime(2024, 7, 1, 12, tzinfo=timezone(timedelta(hours=2))),
    ),
    (
        "timestamp_ntz",
        "timestamp_ntz'1500-02-28 01:02:03.000004'",
        datetime(1500, 2, 28, 1, 2, 3, 4),  # noqa: DTZ001 - without a zone
    ),
    (
        "interval day to second",
        "interval '-3 04:05:06.000007' day to second",
        -timedelta(days=3, hours=4, minutes=5, seconds=6, microseconds=7),
    ),
    ("array<int>", "array(1, null, 3)", [1, None, 3]),
    ("array<array<string>>", "array(array('a'), null, array())", [["a"], None, []]),
    ("map<string,bigint>", "map('a', 1L, 'b', null)", {"a": 1, "b": None}),
    ("map<date,array<double>>", "map(date'2020-02-29', array(0.5D))", {date(2020, 2, 29): [0.5]}),
    (
        "struct<a:int,b:struct<c:string>>",
        "named_struct('a', 1, 'b', named_struct('c', 'x'))",
        Row(a=1, b=Row(c="x")),
    ),
    (
        "array<struct<t:timestamp>>",
        "array(named_struct('t', timestamp'2020-01-01 00:00:00Z'), null)",
        [Row(t=datetime(2020, 1, 1, tzinfo=UTC)), None],
    ),
]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    return environment


def records_of(env: StreamExecutionEnvironment, dataframe: DataFrame) -> list[Any]:
    with env.from_dataframe(dataframe).execute_and_collect() as records:
        return list(records)


def column(session: SparkSession, ddl: str, expression: str) -> DataFrame:
    """A value and a null, in one partition."""
    return session.sql(
        f"select cast({expression} as {ddl}) as x union all select cast(null as {ddl})"
    ).coalesce(1)


def test_each_spark_type_is_converted_to_records(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    columns = ", ".join(
        f"cast({expression} as {ddl}) as c{number}"
        for number, (ddl, expression, _) in enumerate(TYPES)
    )
    nulls = ", ".join(f"cast(null as {ddl})" for ddl, _, _ in TYPES)
    both = session.sql(f"select {columns} union all select {nulls}").coalesce(1)
    first, second = records_of(env, both)
    assert list(first) == [value for _, _, value in TYPES]
    assert list(second) == [None] * len(TYPES)
    zones = [value.tzinfo for value in first if isinstance(value, datetime)]
    assert zones == [UTC, UTC, None]


def test_records_are_converted_to_each_spark_type(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    fields = ", ".join(f"c{number} {ddl}" for number, (ddl, _, _) in enumerate(TYPES))
    rows = [tuple(value for _, _, value in TYPES), (None,) * len(TYPES)]
    made = env.from_collection(rows).to_dataframe(fields)
    equal = " and ".join(
        f"(c{number} is null or to_json(struct(c{number})) = to_json(struct(cast({expression} as {ddl}) as "
        f"c{number})))"
        for number, (ddl, expression, _) in enumerate(TYPES)
    )
    assert made.where(equal).count() == 2
    assert [made.where(f"c{number} is null").count() for number in range(len(TYPES))] == [1] * len(
        TYPES
    )


def test_the_schema_is_kept(session: SparkSession, env: StreamExecutionEnvironment) -> None:
    plain = [ddl for ddl, _, _ in TYPES if "char" not in ddl]
    fields = ", ".join(f"c{number} {ddl}" for number, ddl in enumerate(plain))
    empty = session.createDataFrame([], f"{fields}, n int not null")
    again = env.from_dataframe(empty).to_dataframe(empty.schema)
    assert again.schema == empty.schema
    assert again.collect() == []


@pytest.mark.parametrize("is_generated", ["true", "false"])
def test_operators_keep_time_zones_and_microseconds(
    session: SparkSession, is_generated: str
) -> None:
    configuration = Configuration().set_string("opchain.codegen.enabled", is_generated)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    moment = "timestamp'2020-01-01 00:00:00.123456 UTC'"
    dataframe = session.sql(f"select 1 as k, {moment} as t, array({moment}) as a")
    stream = env.from_dataframe(dataframe).filter(lambda row: row.k == 1)
    reduced = stream.key_by(lambda row: row.k).reduce(lambda first, _: first)
    expected = datetime(2020, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    with reduced.execute_and_collect() as records:
        assert [list(record) for record in records] == [[1, expected, [expected]]]
    assert reduced.to_dataframe().collect() == dataframe.collect()


def test_an_sql_timestamp_is_a_column_without_zone(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    of = Types.ROW_NAMED(["t"], [Types.SQL_TIMESTAMP()])
    moment = datetime(2020, 1, 1, 2, 3, 4)  # noqa: DTZ001 - without a zone
    made = env.from_collection([Row(moment)], of).to_dataframe()
    assert made.schema.simpleString() == "struct<t:timestamp_ntz>"
    assert made.collect() == [(moment,)]


def test_times_of_day_are_converted_if_spark_supports_them(
    session: SparkSession, env: StreamExecutionEnvironment, request: pytest.FixtureRequest
) -> None:
    if session.version < "4.1":
        pytest.skip("Spark before 4.1 has no times of day")
    setting = "spark.sql.timeType.enabled"
    session.conf.set(setting, "true")
    request.addfinalizer(lambda: session.conf.unset(setting))
    at = session.sql("select time'12:34:56.789' as t")
    assert records_of(env, at) == [Row(t=time(12, 34, 56, 789000))]
    again = env.from_collection([(time(12, 34, 56, 789000),)]).to_dataframe(at.schema)
    assert again.selectExpr("cast(t as string)").first()[0] == "12:34:56.789"


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("interval '1' month", "column 'x' has the Spark type interval month"),
        ("parse_json('1')", "column 'x' has the Spark type variant"),
        ("map(array(1), 1)", "column 'x' is a map with keys of type array<int>"),
        ("array(named_struct('y', interval 1 year))", r"column 'x\[\]\.y' has"),
    ],
)
def test_from_dataframe_refuses_types_that_records_cannot_hold(
    session: SparkSession, env: StreamExecutionEnvironment, expression: str, named: str
) -> None:
    dataframe = session.sql(f"select {expression} as x")
    with pytest.raises(GraphError, match=named):
        env.from_dataframe(dataframe)


def numbered(session: SparkSession, partitions: int) -> DataFrame:
    return session.range(0, 2 * partitions, 1, partitions)


@pytest.mark.parametrize(
    ("partitions", "parallelism", "expected"),
    [
        (3, 3, [[0, 1], [2, 3], [4, 5]]),
        (5, 2, [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9]]),
        (2, 4, [[0, 1], [2, 3], [], []]),
    ],
)
def test_partitions_are_assigned_to_subtasks_in_contiguous_runs(
    session: SparkSession, partitions: int, parallelism: int, expected: list[list[int]]
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)

    def kept(records: Iterator[Any]) -> Iterator[list[int]]:
        yield [row.id for row in records]

    stream = env.from_dataframe(numbered(session, partitions))
    with stream.full_window_partition().map_partition(kept).execute_and_collect() as records:
        assert sorted(records, key=lambda ids: (not ids, ids)) == expected


def test_there_is_a_partition_per_subtask(session: SparkSession) -> None:
    parts = arrow_partitions(numbered(session, 7), 3)
    assert [part.getNumPartitions() for part in parts] == [1, 1, 1]


def test_a_dataframe_without_partitions_is_read(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    nothing = session.createDataFrame(session.sparkContext.emptyRDD(), "x int")
    assert records_of(env, nothing) == []


@pytest.mark.parametrize("is_large", ["true", "false"])
def test_a_dataframe_of_another_session_is_read_with_its_settings(
    session: SparkSession, env: StreamExecutionEnvironment, is_large: str
) -> None:
    other = session.newSession()
    other.conf.set("spark.sql.execution.arrow.useLargeVarTypes", is_large)
    session.conf.set(
        "spark.sql.execution.arrow.useLargeVarTypes", "false" if is_large == "true" else "true"
    )
    dataframe = other.sql("select 'abc' as text, X'00FF' as raw")
    session.createDataFrame([], "active int")  # makes its session the active one
    try:
        found = list(env.from_dataframe(dataframe).execute_and_collect())
    finally:
        session.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert found == [Row(text="abc", raw=b"\x00\xff")]


def test_an_invalid_ddl_schema_is_refused(session: SparkSession) -> None:
    with pytest.raises(GraphError, match="'no no no' is not DDL"):
        schema_text("no no no", session)
