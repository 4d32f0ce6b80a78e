"""to_dataframe: lazy, without running sinks, and with errors that Spark shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Row, Types
from opchain.compiler.interception import capturing
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError
from opchain.runtime.spark.dataframe_output import empty_dataframe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PAIR = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()])


@pytest.fixture
def env(session: SparkSession) -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(2)
    return environment


def test_a_keyed_job_with_three_stages_returns_a_dataframe(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    words = session.createDataFrame([("a b a",), ("b c",), ("a",)], "line string").repartition(3)
    counts = (
        env.from_dataframe(words)
        .flat_map(lambda row: [(word, 1) for word in row.line.split()])
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .rebalance()
        .map(lambda pair: Row(word=pair[0], count=pair[1]), PAIR)
        .to_dataframe()
    )
    assert counts.schema.simpleString() == "struct<word:string,count:bigint>"
    greatest = counts.groupBy("word").agg({"count": "max"}).orderBy("word").collect()
    assert [tuple(row) for row in greatest] == [("a", 3), ("b", 2), ("c", 1)]


def test_no_job_runs_before_an_action_and_each_action_runs_one_job(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    calls = session.sparkContext.accumulator(0)

    def counted(value: Any) -> Any:
        calls.add(1)
        return value

    dataframe = env.from_sequence(1, 4).map(counted).to_dataframe("bigint")
    assert calls.value == 0
    assert sorted(row.value for row in dataframe.collect()) == [1, 2, 3, 4]
    assert calls.value == 4
    kept = dataframe.cache()
    assert (kept.count(), kept.count(), kept.count()) == (4, 4, 4)
    assert calls.value == 8
    kept.unpersist()


def test_sinks_of_the_program_are_run_once_by_execute_only(
    session: SparkSession, env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = env.from_sequence(1, 2).map(lambda n: 10 * n)
    numbers.print()
    dataframe = numbers.map(lambda n: n + 1, Types.LONG()).to_dataframe()
    assert [each.name for each in env.get_transformations()] == ["Print to Std. Out"]
    assert sorted(row.value for row in dataframe.collect()) == [11, 21]
    assert capsys.readouterr().out == ""
    env.execute()
    assert sorted(capsys.readouterr().out.split()) == ["10", "1>", "20", "2>"]


def test_a_dataframe_can_be_used_twice_in_a_query(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    dataframe = env.from_sequence(1, 6).to_dataframe("bigint")
    assert dataframe.union(dataframe).coalesce(1).count() == 12
    again = env.from_dataframe(dataframe).map(lambda row: -row.value, Types.LONG()).to_dataframe()
    assert sorted(row.value for row in again.collect()) == [-6, -5, -4, -3, -2, -1]


@pytest.mark.parametrize(
    ("record", "schema", "said"),
    [
        (("a", "b"), "word string, n int", "column 'n' got 'b', of type str, but expects int"),
        (("a", None), "word string, n int not null", "column 'n' got None"),
        (("a",), "word string, n int", r"the row got ('a',), of type tuple"),
        (7, "word string", "it is not a row"),
    ],
)
def test_the_error_about_a_record_that_does_not_fit_names_its_operator(
    session: SparkSession, env: StreamExecutionEnvironment, record: Any, schema: str, said: str
) -> None:
    dataframe = env.from_collection([record]).to_dataframe(schema)
    with pytest.raises(Exception, match="RecordSchemaError") as failure:
        dataframe.collect()
    assert "'DataFrame: Writer' (test_dataframe_output.py:" in str(failure.value)
    assert said in str(failure.value)


def test_an_error_of_a_function_has_its_place(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    dataframe = env.from_sequence(0, 1).map(lambda n: 1 // n).to_dataframe("bigint")
    with pytest.raises(Exception, match="ZeroDivisionError") as failure:
        dataframe.collect()
    assert "in 'Map' (test_dataframe_output.py:" in str(failure.value)


def test_the_dataframe_of_an_unbounded_stream_is_streaming(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    rates = session.readStream.format("rate").load()
    values = env.from_dataframe(rates).map(lambda row: row.value)
    assert values.to_dataframe("bigint").isStreaming


def test_the_settings_of_the_session_are_not_changed(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    before = dict(session.sparkContext.getConf().getAll()), session.conf.getAll
    env.from_dataframe(session.range(3)).to_dataframe("id bigint").collect()
    assert (dict(session.sparkContext.getConf().getAll()), session.conf.getAll) == before


def test_to_dataframe_returns_an_empty_dataframe_while_only_planning(session: SparkSession) -> None:
    with capturing() as capture:
        env = StreamExecutionEnvironment.get_execution_environment()
        dataframe = (
            env.from_dataframe(session.range(3)).map(lambda row: row.id).to_dataframe("bigint")
        )
        assert dataframe.count() == 0
    (job,) = capture.jobs
    assert job.method == "to_dataframe"


def test_there_is_no_empty_dataframe_without_a_schema(session: SparkSession) -> None:
    assert empty_dataframe(None) is None


def test_an_invalid_ddl_schema_is_refused(
    session: SparkSession, env: StreamExecutionEnvironment
) -> None:
    with pytest.raises(GraphError, match="'not a schema at all' is not DDL"):
        env.from_sequence(1, 2).to_dataframe("not a schema at all")
