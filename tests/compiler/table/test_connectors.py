"""The options of connectors: what they set, and what is wrong."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.table.connectors import table_source
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError
from opchain.table import Schema, StreamTableEnvironment, TableDescriptor

if TYPE_CHECKING:
    from pathlib import Path

KAFKA = {"topic": "t", "properties.bootstrap.servers": "x:1", "properties.group.id": "g"}


@pytest.fixture
def tables() -> StreamTableEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    tables = StreamTableEnvironment.create(env)
    tables.get_config().set("execution.target", "local")
    return tables


def kafka_table(**options: str) -> Any:
    given = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    schema = Schema.new_builder().column("id", "INT").column("name", "STRING").build()
    descriptor = TableDescriptor("kafka", schema, {"format": "json", **KAFKA, **given})
    return table_source(descriptor, "k").source


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"key__format": "json"}, r"needs the option 'key\.fields'"),
        ({"key__fields": "id"}, r"needs the option 'key\.format'"),
        ({"key__fields": "no", "key__format": "json"}, r"key\.fields has 'no'; .* id, name"),
        (
            {"key__fields": "id", "key__format": "json", "key__fields_prefix": "k_"},
            r"key\.fields has 'id'; use columns of the table that begin with 'k_'",
        ),
        (
            {"key__fields": "id", "key__format": "json", "key__fields_prefix": "i"},
            "'value.fields-include' = 'EXCEPT_KEY'",
        ),
        ({"value__fields_include": "NONE"}, "is 'NONE'; use ALL or EXCEPT_KEY"),
        ({"scan__startup__mode": "specific-offsets"}, "specific-offsets'; add it"),
        (
            {"scan__startup__mode": "specific-offsets", "scan__startup__specific_offsets": "0:1"},
            "is '0:1'; write partition:0,offset:42",
        ),
        (
            {"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "now"},
            "the option 'scan.startup.timestamp-millis': 'now' is not",
        ),
        ({"json__fail_on_missing_field": "yes"}, "'yes' is not a boolean"),
        ({"scan__topic_partition_discovery__interval": "soon"}, "'soon' is not a duration"),
        ({"format": "raw"}, r"'raw' is for one column .* id INT, name STRING"),
    ],
)
def test_wrong_options_of_a_kafka_table_are_named(options: dict[str, str], problem: str) -> None:
    with pytest.raises(GraphError, match=problem):
        kafka_table(**options)


@pytest.mark.parametrize("option", ["lower-bound", "upper-bound", "num"])
def test_wrong_numbers_of_a_database_are_named(tables: StreamTableEnvironment, option: str) -> None:
    tables.execute_sql(
        "CREATE TABLE t (id INT) WITH ('connector'='jdbc', 'url'='jdbc:postgresql://localhost/x', 'table-name'='t', "
        f"'scan.partition.column'='id', 'scan.partition.{option}'='ten')"
    )
    with pytest.raises(
        GraphError, match=rf"table 't': the option 'scan.partition.{option}': 'ten' is"
    ):
        tables.to_data_stream(tables.from_path("t"))


def test_a_wrong_parallelism_of_a_sink_is_named(tables: StreamTableEnvironment) -> None:
    tables.execute_sql(
        "CREATE TABLE p (a INT) WITH ('connector'='print', 'sink.parallelism'='all')"
    )
    with pytest.raises(GraphError, match=r"table 'p': the option 'sink.parallelism': 'all' is"):
        tables.execute_sql("INSERT INTO p VALUES (1)")


def test_options_without_effect_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "opchain.job")
    kafka_table(scan__parallelism="2", scan__startup__timestamp_millis="5")
    assert [each.getMessage() for each in caplog.records] == [
        "table 'k': the option 'scan.startup.timestamp-millis' = '5' has no effect: scan.startup.mode is 'group-offsets'",
        "table 'k': the option 'scan.parallelism' = '2' has no effect: set the parallelism of the job",
    ]


def written(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.is_file())


def insert(tables: StreamTableEnvironment, folder: Path, options: str) -> None:
    tables.execute_sql(
        f"CREATE TABLE o (a STRING) WITH ('connector'='filesystem', 'path'='{folder}', {options})"
    )
    values = ", ".join(f"('{number:0100}')" for number in range(50))
    tables.execute_sql(f"INSERT INTO o VALUES {values}").wait()


def test_files_of_a_table_have_the_size_of_the_rolling_policy(
    tables: StreamTableEnvironment, tmp_path: Path
) -> None:
    insert(tables, tmp_path, "'format'='json', 'sink.rolling-policy.file-size'='1 kb'")
    files = written(tmp_path)
    assert len(files) > 2
    assert max((tmp_path / name).stat().st_size for name in files) < 1500
    assert len(list(tables.execute_sql("SELECT * FROM o").collect())) == 50


def test_files_of_a_table_are_compacted(tables: StreamTableEnvironment, tmp_path: Path) -> None:
    size = "'sink.rolling-policy.file-size'='1 kb', 'compaction.file-size'='1 mb'"
    insert(tables, tmp_path, f"'format'='json', 'auto-compaction'='true', {size}")
    (name,) = written(tmp_path)
    assert name.startswith("compacted-")
    assert len((tmp_path / name).read_text().splitlines()) == 50


def test_a_jdbc_table_sets_batch_size_and_retries() -> None:
    from opchain.compiler.table.connectors.jdbc import _execution  # noqa: PLC0415
    from opchain.compiler.table.connectors.options import Options  # noqa: PLC0415

    given = {"sink.buffer-flush.max-rows": "7", "sink.max-retries": "0"}
    schema = Schema.new_builder().column("id", "INT").build()
    found = _execution(Options(TableDescriptor("jdbc", schema, given), "t"))
    assert (found.get_batch_size(), found.get_max_retries()) == (7, 0)
