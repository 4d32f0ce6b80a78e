from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.jdbc import JdbcSink, JdbcSource
from opchain.runtime.connectors.jdbc.source import JdbcSourceError

if TYPE_CHECKING:
    from postgres_server import Server

ORDERS = "SELECT id, name FROM orders WHERE name LIKE 'n%'"


@pytest.fixture
def orders(postgres: Server) -> Server:
    postgres.run(
        "CREATE TABLE orders (id int, name text, at timestamp)",
        "INSERT INTO orders SELECT n, 'n' || n, timestamp '2024-01-01' + n * interval '1 hour' FROM generate_series(1, 100) AS n",
        "INSERT INTO orders VALUES (NULL, 'null', NULL)",
    )
    return postgres


def read(builder: Any, parallelism: int = 3) -> list[Any]:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    stream = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "orders")
    with stream.execute_and_collect() as found:
        return list(found)


def builder(server: Server) -> Any:
    return JdbcSource.builder().set_sql(ORDERS).set_connection_options(server.options)


def test_a_query_without_ranges_is_read_by_one_subtask(orders: Server) -> None:
    rows = read(builder(orders))
    assert [row.id for row in rows] == [*range(1, 101), None]
    assert rows[0].name == "n1"


@pytest.mark.parametrize("bounds", [(), (10, 20, 4), (1, 100, 7)])
def test_ranges_of_a_number_return_each_row_once(orders: Server, bounds: tuple[Any, ...]) -> None:
    rows = read(builder(orders).partition_by("id", *bounds))
    assert sorted((row.id or 0) for row in rows) == list(range(101))


def test_ranges_of_a_timestamp_return_each_row_once(orders: Server) -> None:
    of = Types.ROW_NAMED(["n", "t"], [Types.INT(), Types.SQL_TIMESTAMP()])
    made = builder(orders).set_sql("SELECT id, at FROM orders").set_type_info(of)
    rows = read(made.partition_by("at", partitions=5))
    assert sorted((row.n or 0) for row in rows) == list(range(101))
    found = made.build().planned(3)
    ranges = [split for subtask in found.splits(3) for split in subtask]
    assert len(ranges) == 5
    assert {type(split.low) for split in ranges} == {type(None), datetime}


def test_ranges_of_a_date_return_each_row_once(orders: Server) -> None:
    made = builder(orders).set_sql("SELECT id, CAST(at AS date) AS day FROM orders")
    rows = read(made.partition_by("day"))
    assert sorted((row.id or 0) for row in rows) == list(range(101))
    assert len(made.build().planned(3).splits(3)[2]) == 1


def test_timestamps_are_in_utc_in_any_time_zone_of_the_server(postgres: Server) -> None:
    postgres.run("CREATE TABLE times (plain timestamp, zoned timestamptz)")
    postgres.run("ALTER ROLE postgres SET TimeZone = 'Asia/Tokyo'")
    try:
        kind = Types.ROW_NAMED(["plain", "zoned"], [Types.SQL_TIMESTAMP()] * 2)
        env = StreamExecutionEnvironment.get_execution_environment(
            Configuration().set_string("execution.target", "local")
        )
        noon = datetime(2024, 1, 1, 12)  # noqa: DTZ001 - the time zone is tested
        insert = "INSERT INTO times VALUES (?, ?)"
        env.from_collection([(noon, noon)], kind).add_sink(
            JdbcSink.sink(insert, kind, postgres.options)
        )
        env.execute()
        made = builder(postgres).set_sql("SELECT plain, zoned FROM times")
        (untyped,), (typed,) = read(made), read(made.set_type_info(kind))
    finally:
        postgres.run("ALTER ROLE postgres RESET TimeZone")
    assert tuple(untyped) == (noon, noon.replace(tzinfo=timezone.utc))
    assert tuple(typed) == (noon, noon)


def test_nan_and_infinity_are_read_and_do_not_affect_ranges(postgres: Server) -> None:
    postgres.run(
        "CREATE TABLE prices (price numeric)",
        "INSERT INTO prices VALUES (1), (4), ('NaN'), ('-Infinity'), ('Infinity')",
    )
    made = builder(postgres).set_sql("SELECT price FROM prices").partition_by("price")
    assert sorted(str(row.price) for row in read(made)) == [
        "-Infinity",
        "1",
        "4",
        "Infinity",
        "NaN",
    ]
    assert made.build().planned(3).splits(3) == [[(None, 2)], [(2, 3)], [(3, None)]]


@pytest.mark.parametrize("end", [";", " -- of the shop", " /* all */ ; "])
def test_a_query_with_ranges_may_end_with_a_semicolon_or_a_comment(
    orders: Server, end: str
) -> None:
    assert len(read(builder(orders).set_sql(ORDERS + end).partition_by("id"))) == 101


def test_the_error_names_a_mistake_in_the_builder(orders: Server) -> None:
    with pytest.raises(JdbcSourceError, match=r'relation "missing" does not exist'):
        read(builder(orders).set_sql("SELECT * FROM missing"))
    with pytest.raises(
        JdbcSourceError, match=r"by the column name: its least value is 'n1', which is neither"
    ):
        read(builder(orders).partition_by("name"))
    two = Types.ROW_NAMED(["a"], [Types.INT()])
    with pytest.raises(
        JdbcSourceError, match=r"gives 2 columns \(id, name\), but its type has 1: a"
    ):
        read(builder(orders).set_type_info(two))
    with pytest.raises(ValueError, match="both bounds or none"):
        builder(orders).partition_by("id", 1)
    with pytest.raises(ValueError, match="put the lower bound first"):
        builder(orders).partition_by("id", 2, 1)
    with pytest.raises(TypeError, match="numbers or datetimes"):
        builder(orders).partition_by("id", "a", "b")
    with pytest.raises(ValueError, match=r"set_sql\(\) and set_connection_options"):
        JdbcSource.builder().build()
