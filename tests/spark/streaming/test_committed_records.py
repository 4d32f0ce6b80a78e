"""Streaming DataFrames before and after an unbounded job: from_dataframe and to_dataframe."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Row, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.errors import GraphError, RecordSchemaError
from opchain.runtime.spark.dataframe_output import committed_records, record_type_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from opchain.datastream import DataStream

pytestmark = pytest.mark.spark

COUNT = Types.ROW_NAMED(["word", "seen"], [Types.STRING(), Types.LONG()])


def environment(folder: Path | None) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("opchain.streaming.trigger", "available-now")
    if folder is not None:
        configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    return env


def write(folder: Path, name: str, *words: str) -> None:
    (folder / "input").mkdir(exist_ok=True)
    text = "".join(json.dumps({"word": word}) + "\n" for word in words)
    (folder / "input" / name).write_text(text)


def word_counts(
    env: StreamExecutionEnvironment, session: SparkSession, folder: Path
) -> DataStream[Any]:
    lines = session.readStream.schema("word string").json(str(folder / "input"))
    rows = env.from_dataframe(lines).uid("rows")
    pairs = rows.map(lambda row: (row.word, 1)).key_by(lambda pair: pair[0]).sum(1).uid("sums")
    return pairs.map(lambda pair: Row(word=pair[0], seen=pair[1]), COUNT).uid("counts")


def all_of(dataframe: DataFrame, checkpoints: Path) -> list[tuple[Any, ...]]:
    """The sorted records that a query returns which resumes from its checkpoints."""
    found: list[tuple[Any, ...]] = []
    writer = dataframe.writeStream.option("checkpointLocation", str(checkpoints))
    writer = writer.foreachBatch(lambda batch, _: found.extend(map(tuple, batch.collect())))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return sorted(found, key=repr)


def test_queries_read_each_record_once_after_restarts_of_job_and_query(
    session: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, "1", "a", "b", "a")
    env = environment(tmp_path)
    counts = word_counts(env, session, tmp_path).to_dataframe()
    assert counts.isStreaming
    assert counts.schema.simpleString() == "struct<word:string,seen:bigint>"
    assert all_of(counts, tmp_path / "query") == []  # no job has run yet
    env.execute("first")
    first = [("a", 1), ("a", 2), ("b", 1)]
    assert all_of(counts, tmp_path / "query") == first
    assert all_of(counts, tmp_path / "query") == []

    write(tmp_path, "2", "b", "c")
    env = environment(tmp_path)
    counts = word_counts(env, session, tmp_path).to_dataframe(options={"maxFilesPerTrigger": 1})
    env.execute("second")
    assert all_of(counts, tmp_path / "query") == [("b", 2), ("c", 1)]
    assert all_of(counts, tmp_path / "another query") == sorted([*first, ("b", 2), ("c", 1)])


def test_spark_processes_records_while_the_job_runs(session: SparkSession, tmp_path: Path) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = DataGeneratorSource(lambda index: index, records_per_second=200)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    dataframe = numbers.map(lambda n: n % 3).to_dataframe("bigint", path=str(tmp_path / "numbers"))
    totals = dataframe.groupBy("value").count()
    query = totals.writeStream.format("memory").queryName("totals").outputMode("complete").start()
    client = env.execute_async("numbers")
    try:
        while (
            session.table("totals").count() < 3
        ):  # not available-now: there are always more records
            assert query.exception() is None
    finally:
        client.cancel().result(240)
        query.stop()


NESTED = """
    name string, price decimal(20,4), at timestamp, local timestamp_ntz, day date, data binary,
    small tinyint, ratio double, pause interval day to second,
    inner struct<n: int, names: array<string>>, prices map<string, decimal(9,2)>,
    deep array<struct<k: string, v: map<string, array<bigint>>>>
"""
AT = datetime(2024, 3, 31, 1, 59, 59, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
FULL = (
    "ü\x00",
    Decimal("-1234567890123456.7891"),
    AT,
    datetime(1500, 2, 28, 23, 59, 59, 999999),  # noqa: DTZ001 - without a zone
    date(1, 1, 1),
    b"\x00\xff",
    -128,
    float("-inf"),
    timedelta(days=-1, microseconds=1),
    (7, ["x", None]),
    {"eur": Decimal("1.50"), "usd": None},
    [{"k": "z", "v": {"ones": [1, None], "none": None}}, None],
)


def test_types_and_nulls_are_kept(session: SparkSession, tmp_path: Path) -> None:
    rows = session.createDataFrame([FULL, (None,) * len(FULL)], NESTED)
    rows.write.parquet(str(tmp_path / "input"))
    streaming = session.readStream.schema(rows.schema).parquet(str(tmp_path / "input"))
    env = environment(tmp_path)
    seen = env.from_dataframe(streaming).uid("rows").map(lambda row: row).uid("same")
    same = seen.to_dataframe(rows.schema)
    env.execute("types")
    assert same.schema == rows.schema
    found = all_of(same.selectExpr("name", "to_json(struct(*)) text"), tmp_path / "query")
    plain = rows.selectExpr("name", "to_json(struct(*)) text").collect()
    assert found == sorted(map(tuple, plain), key=repr)


def test_records_of_a_streaming_dataframe_equal_those_of_a_bounded_one(
    session: SparkSession, tmp_path: Path
) -> None:
    rows = session.createDataFrame([FULL], NESTED)
    rows.write.parquet(str(tmp_path / "input"))
    streaming = session.readStream.schema(rows.schema).parquet(str(tmp_path / "input"))
    env = environment(tmp_path)
    collected = env.from_dataframe(streaming).uid("rows").map(repr).collect_async()
    env.execute("records")
    batch = environment(None)
    again = batch.from_dataframe(rows).map(repr).collect_async()
    batch.execute("batch")
    (streamed,), (bounded,) = list(collected), list(again)
    assert streamed == bounded
    assert "Decimal('-1234567890123456.7891')" in streamed


def test_a_record_that_does_not_fit_ends_the_job(session: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "1", "a")
    env = environment(tmp_path)
    counts = word_counts(env, session, tmp_path)
    counts.to_dataframe("word string, seen string")
    with pytest.raises(
        RecordSchemaError, match=r"to_dataframe\(\) of 'Map' .* column 'seen' got 1"
    ):
        env.execute("misfit")


def test_a_folder_whose_name_is_a_pattern_is_refused(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"Spark reads '\[' as part of a pattern"):
        committed_records(str(tmp_path / "a[1]"), record_type_of("bigint"))
