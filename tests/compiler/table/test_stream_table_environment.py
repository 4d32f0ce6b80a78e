from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Configuration, Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, UnsupportedFeatureError
from opchain.table import DataTypes, Schema, StreamTableEnvironment, TableDescriptor


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


def test_a_table_becomes_a_stream_of_rows(tables: StreamTableEnvironment) -> None:
    tables.create_temporary_table("source", numbers())
    stream = tables.to_data_stream(tables.from_path("source"))
    assert stream.get_type() == Types.ROW_NAMED(["n"], [Types.INT()])
    assert stream.get_name() == "source"
    with stream.map(lambda row: (row.n, row[0])).execute_and_collect() as found:
        assert list(found) == [(n, n) for n in (1, 2, 3)]


def test_a_table_needs_no_name(tables: StreamTableEnvironment) -> None:
    stream = tables.to_data_stream(tables.from_descriptor(numbers(2)))
    with stream.map(lambda row: row.n).execute_and_collect() as found:
        assert list(found) == [1, 2]


def test_tables_are_known_by_name(tables: StreamTableEnvironment) -> None:
    tables.create_temporary_table("b", numbers())
    tables.create_temporary_table("a", numbers())
    assert tables.list_temporary_tables() == ["a", "b"]
    with pytest.raises(GraphError, match="there is a table 'a' already"):
        tables.create_temporary_table("a", numbers())
    assert tables.drop_temporary_table("a")
    assert not tables.drop_temporary_table("a")
    with pytest.raises(GraphError, match="there is no table 'a'; there are: 'b'"):
        tables.from_path("a")


def test_a_table_has_columns_and_a_connector_that_is_known(tables: StreamTableEnvironment) -> None:
    with pytest.raises(GraphError, match="the table 'x' has no columns"):
        tables.create_temporary_table("x", TableDescriptor.for_connector("datagen").build())
    kafka = TableDescriptor.for_connector("kinesis").schema(numbers().schema).build()  # type: ignore[arg-type]
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"'kinesis'.*write a source .*; supported connectors: 'blackhole', 'datagen'",
    ):
        tables.create_temporary_table("x", kafka)


def test_wrong_options_name_the_table_and_the_line(tables: StreamTableEnvironment) -> None:
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


@pytest.mark.parametrize("method", ["create_catalog", "explain_sql", "to_changelog_stream"])
def test_the_rest_of_the_table_api_is_refused_by_name(
    tables: StreamTableEnvironment, method: str
) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=rf"StreamTableEnvironment\.{method}\(\) \(test_"
    ):
        getattr(tables, method)("SELECT 1")


def test_settings_are_refused() -> None:
    settings: Any = object()
    with pytest.raises(UnsupportedFeatureError, match="environment_settings"):
        StreamTableEnvironment.create(environment_settings=settings)


def test_without_an_environment_there_is_a_new_one() -> None:
    stream = StreamTableEnvironment.create().to_data_stream(
        StreamTableEnvironment.create().from_descriptor(numbers())
    )
    assert isinstance(stream.get_execution_environment(), StreamExecutionEnvironment)
