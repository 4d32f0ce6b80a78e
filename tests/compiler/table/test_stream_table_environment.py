from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from opchain.common import Configuration, Duration, Row, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.compiler.table.data_types import spark_schema
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.table import (
    DataTypes,
    EnvironmentSettings,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
)
from opchain.table.expressions import col, lit, to_timestamp_ltz


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


@pytest.fixture
def tables(env: StreamExecutionEnvironment) -> StreamTableEnvironment:
    return StreamTableEnvironment.create(stream_execution_environment=env)


def numbers(rows: int = 3) -> TableDescriptor:
    return (
        TableDescriptor.for_connector("datagen")
        .schema(Schema.new_builder().column("n", DataTypes.INT()).build())
        .option("fields.n.kind", "sequence")
        .option("fields.n.start", "1")
        .option("fields.n.end", str(rows))
        .build()
    )


def test_to_data_stream_returns_a_stream_of_rows(tables: StreamTableEnvironment) -> None:
    tables.create_temporary_table("source", numbers())
    stream = tables.to_data_stream(tables.from_path("source"))
    assert stream.get_type() == Types.ROW_NAMED(["n"], [Types.INT()])
    assert stream.get_name() == "source"
    with stream.map(lambda row: (row.n, row[0])).execute_and_collect() as found:
        assert list(found) == [(n, n) for n in (1, 2, 3)]


def test_from_descriptor_returns_a_table_without_a_name(tables: StreamTableEnvironment) -> None:
    stream = tables.to_data_stream(tables.from_descriptor(numbers(2)))
    with stream.map(lambda row: row.n).execute_and_collect() as found:
        assert list(found) == [1, 2]


def test_temporary_tables_are_listed_and_dropped_by_name(tables: StreamTableEnvironment) -> None:
    tables.create_temporary_table("b", numbers())
    tables.create_temporary_table("a", numbers())
    assert tables.list_temporary_tables() == ["a", "b"]
    with pytest.raises(GraphError, match="there is a table 'a' already"):
        tables.create_temporary_table("a", numbers())
    assert tables.drop_temporary_table("a")
    assert not tables.drop_temporary_table("a")
    with pytest.raises(GraphError, match=r"there is no table 'a' .*; there are: 'b'"):
        tables.from_path("a")
    tables.create_temporary_table("orders", numbers())
    with pytest.raises(GraphError, match="did you mean 'orders'"):
        tables.execute_sql("SELECT * FROM order")


def test_a_table_without_columns_or_with_an_unknown_connector_is_refused(
    tables: StreamTableEnvironment,
) -> None:
    with pytest.raises(GraphError, match="the table 'x' has no columns"):
        tables.create_temporary_table("x", TableDescriptor.for_connector("datagen").build())
    kafka = TableDescriptor.for_connector("kinesis").schema(numbers().schema).build()  # type: ignore[arg-type]
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"'kinesis'.*write a source .*; supported connectors: 'blackhole', 'datagen'",
    ):
        tables.create_temporary_table("x", kafka)
    with pytest.raises(UnsupportedFeatureError, match=r"did you mean 'kafka'\?"):
        tables.execute_sql("CREATE TABLE x (n INT) WITH ('connector' = 'kafak')")


def test_errors_of_table_options_name_the_table_and_the_line(
    tables: StreamTableEnvironment,
) -> None:
    wrong = (
        TableDescriptor.for_connector("datagen")
        .schema(Schema.new_builder().column("n", "INT").build())
        .option("rows", 1)
        .build()
    )
    tables.create_temporary_table("source", wrong)
    with pytest.raises(
        ValueError,
        match=r"to_data_stream\(\) \(test_stream_table_environment.py:\d+\), table 'source': datagen does",
    ):
        tables.to_data_stream(tables.from_path("source"))


@pytest.mark.parametrize("method", ["create_catalog", "from_changelog_stream", "connect"])
def test_other_methods_of_the_table_environment_are_refused_by_name(
    tables: StreamTableEnvironment, method: str
) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=rf"StreamTableEnvironment\.{method}\(\) \(test_"
    ):
        getattr(tables, method)("SELECT 1")


def test_the_table_environment_has_the_settings_of_the_streams(
    env: StreamExecutionEnvironment,
) -> None:
    own = Configuration().set_string("pipeline.name", "orders")
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_configuration(own).build()
    tables = StreamTableEnvironment.create(env, environment_settings=settings)
    assert not settings.is_streaming_mode()
    config = tables.get_config().set("parallelism.default", "3")
    config.get_configuration().set_string("table.exec.state.ttl", "2 s")
    assert env.get_parallelism() == 3
    assert config.get("pipeline.name", "") == "orders"
    assert config.get_idle_state_retention().total_seconds() == 2
    assert env.get_configuration().get_string("execution.runtime-mode", "") == "BATCH"


def test_settings_that_would_change_results_are_refused() -> None:
    config = TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).get_config()
    assert config.get_local_timezone() == "UTC"
    with pytest.raises(UnsupportedFeatureError, match=r"zone 'Asia/Tokyo'.*are in UTC"):
        config.set("table.local-time-zone", "Asia/Tokyo")
    with pytest.raises(UnsupportedFeatureError, match="there are no catalogs"):
        EnvironmentSettings.new_instance().with_built_in_catalog_name("hive")


def test_environment_settings_accept_the_planner_of_pyflink_1() -> None:
    with pytest.warns(DeprecationWarning, match="leave the call out"):
        assert EnvironmentSettings.new_instance().use_blink_planner().build().is_streaming_mode()
    with pytest.warns(DeprecationWarning, match=r"use_old_planner\(\) is of PyFlink 1"):
        assert EnvironmentSettings.new_instance().use_old_planner().build().is_streaming_mode()


def test_a_table_source_may_be_idle(tables: StreamTableEnvironment) -> None:
    tables.get_config().set("table.exec.source.idle-timeout", "5 s")
    stream = tables.to_data_stream(tables.from_descriptor(numbers()))
    spec: Any = stream.transformation.spec
    assert spec.watermark_strategy.idle_timeout == Duration.of_seconds(5)


def test_a_sink_without_columns_takes_the_columns_of_the_query(
    tables: StreamTableEnvironment, capfd: pytest.CaptureFixture[str]
) -> None:
    sink = TableDescriptor.for_connector("print").build()
    tables.from_descriptor(numbers(1)).execute_insert(sink).wait()
    assert capfd.readouterr().out == "+I[1]\n"


@pytest.mark.parametrize(
    ("type_info", "found"),
    [
        (Types.ROW([Types.INT(), Types.STRING()]), Row(f0=1, f1="a")),
        (Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()]), Row(x=1, y="a")),
        (Types.TUPLE([Types.INT(), Types.STRING()]), (1, "a")),
    ],
)
def test_to_data_stream_converts_rows_to_a_declared_type(
    tables: StreamTableEnvironment, type_info: Any, found: Any
) -> None:
    table = tables.sql_query("SELECT * FROM (VALUES (1, 'a')) AS t(id, name)")
    stream = tables.to_append_stream(table, type_info)
    with stream.map(repr).execute_and_collect() as records:
        assert list(records) == [repr(found)]
    with tables.to_retract_stream(table, type_info).map(repr).execute_and_collect() as records:
        assert list(records) == [repr((True, found))]
    with pytest.raises(GraphError, match="table has 2 columns"):
        tables.to_append_stream(table, Types.TUPLE([Types.INT()]))


@pytest.mark.parametrize(
    ("schema", "names", "row"),
    [
        (Schema.new_builder().column("c", "FLOAT").column("a", "INT"), ["c", "a"], (2.5, 1)),
        (Schema.new_builder().column("b", "STRING"), ["b"], ("x",)),
        (
            Schema.new_builder().column("b", "STRING").column_by_expression("d", "a + 1"),
            ["b", "d"],
            ("x", 2),
        ),
        (
            Schema.new_builder().column_by_expression("d", "a + 1"),
            ["a", "b", "c", "d"],
            (1, "x", 2.5, 2),
        ),
        (
            Schema.new_builder()
            .column_by_expression("d", col("a") + 1)
            .column_by_expression("t", to_timestamp_ltz(col("d"), 0))
            .watermark("t", col("t") - lit(5).seconds),
            ["a", "b", "c", "d", "t"],
            (1, "x", 2.5, 2, datetime(1970, 1, 1, 0, 0, 2, tzinfo=timezone.utc)),
        ),
    ],
)
def test_a_schema_selects_fields_of_the_stream(
    tables: StreamTableEnvironment, schema: Schema.Builder, names: list[str], row: tuple[Any, ...]
) -> None:
    of = Types.ROW_NAMED(["a", "b", "c"], [Types.INT(), Types.STRING(), Types.FLOAT()])
    stream = tables.stream_environment.from_collection([(1, "x", 2.5)], of)
    table = tables.from_data_stream(stream, schema.build())
    assert [each.name for each in table.columns] == names
    assert [tuple(each) for each in table.execute().collect()] == [row]
    with pytest.raises(GraphError, match=r"has no field 'z'; its fields are a, b, c$"):
        tables.from_data_stream(stream, Schema.new_builder().column("z", "INT").build())


FIRST_SECOND = datetime(1970, 1, 1, 0, 0, 1)  # noqa: DTZ001 - a TIMESTAMP has no time zone
FIELDS = Types.TUPLE([Types.INT(), Types.STRING(), Types.LONG()])


@pytest.mark.parametrize(
    ("expressions", "names", "row"),
    [
        ((col("x"), col("y")), ["x", "y"], (1, "a")),
        ((col("f1").alias("b"), col("f0")), ["b", "f0"], ("a", 1)),
        ((col("f2"),), ["f2"], (7,)),
        ((col("x"), col("t").alias("f1")), None, "has no field for"),
        (
            (col("f0"), col("b")),
            None,
            r"no field for col\('b'\); it has f0 INT, f1 STRING, f2 BIGINT",
        ),
        ((col("a"), col("b"), col("c"), col("d")), None, r"no field for col\('d'\)"),
        ((col("x"), col("x")), None, "two columns would have the name 'x'"),
        ((col("x"), col("t").rowtime), None, "would replace the field 'f1' of type STRING"),
        ((col("f0").proctime,), None, r"col\('f0'\).proctime would replace the field 'f0'"),
        ((col("f0") + 1,), None, r"got f0 \+ 1; it takes a Schema, or columns"),
    ],
)
def test_expressions_select_or_rename_the_fields_of_a_stream(
    tables: StreamTableEnvironment, expressions: Any, names: list[str] | None, row: Any
) -> None:
    stream = tables.stream_environment.from_collection([(1, "a", 7)], FIELDS)
    if names is None:
        with pytest.raises((GraphError, TypeError), match=row):
            tables.from_data_stream(stream, *expressions)
        return
    table = tables.from_data_stream(stream, *expressions)
    assert [each.name for each in table.columns] == names
    assert [tuple(each) for each in table.execute().collect()] == [row]


class InSeconds(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[0]) * 1000


@pytest.mark.parametrize(
    ("expressions", "row"),
    [
        ((col("a"), col("b"), col("c"), col("t").rowtime), (1, "a", 7, FIRST_SECOND)),
        ((col("a"), col("b"), col("c").rowtime), (1, "a", FIRST_SECOND)),
        ((col("f2").rowtime, col("f1")), (FIRST_SECOND, "a")),
    ],
)
def test_rowtime_is_the_timestamp_of_the_record(
    tables: StreamTableEnvironment, expressions: Any, row: tuple[Any, ...]
) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(InSeconds())
    stream = tables.stream_environment.from_collection([(1, "a", 7)], FIELDS)
    stream = stream.assign_timestamps_and_watermarks(strategy)
    tables.create_temporary_view("v", stream, *expressions)
    assert [tuple(each) for each in tables.execute_sql("SELECT * FROM v").collect()] == [row]


def test_proctime_is_the_processing_time(tables: StreamTableEnvironment) -> None:
    stream = tables.stream_environment.from_collection([1], Types.INT())
    table = tables.from_data_stream(stream, col("a"), col("p").proctime)
    assert str(table.get_schema().get_field_data_type("p")) == "TIMESTAMP_LTZ(3)"
    [(_, found)] = table.execute().collect()
    assert abs(found - datetime.now(timezone.utc)).total_seconds() < 600


def test_a_stream_without_a_declared_type_is_one_column_of_python_objects(
    tables: StreamTableEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = tables.stream_environment.from_collection([(1, "a"), None]).map(lambda each: each)
    table = tables.from_data_stream(stream)
    table.print_schema()
    assert capsys.readouterr().out == "(\n  `f0` RAW('[B', '...')\n)\n"
    assert [each[0] for each in table.execute().collect()] == [(1, "a"), None]
    with tables.to_data_stream(table).map(lambda row: row.f0).execute_and_collect() as found:
        assert list(found) == [(1, "a"), None]
    with pytest.raises(UnsupportedFeatureError, match=r"RAW can't be cast to BYTES.*output_type"):
        table.select(col("f0").cast(DataTypes.BYTES()))
    with pytest.raises(UnsupportedFeatureError, match="Spark SQL can't read a column of type RAW"):
        spark_schema(table.columns)


def test_create_without_an_environment_makes_a_new_one() -> None:
    stream = StreamTableEnvironment.create().to_data_stream(
        StreamTableEnvironment.create().from_descriptor(numbers())
    )
    assert isinstance(stream.get_execution_environment(), StreamExecutionEnvironment)
