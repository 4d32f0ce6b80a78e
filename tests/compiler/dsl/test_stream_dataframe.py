"""What `to_dataframe` asks for and takes from a program; that it runs is tests/spark/test_dataframe_output.py."""

from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.compiler.dsl.stream_dataframe import PlannedDataFrame
from opchain.compiler.interception import capturing
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, UnsupportedFeatureError


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def test_what_leads_to_it_alone_leaves_the_program(env: StreamExecutionEnvironment) -> None:
    shared = env.from_sequence(1, 3).map(lambda n: n).name("shared")
    shared.print()
    with capturing() as capture:
        shared.map(lambda n: n, Types.LONG()).name("own").to_dataframe()
    assert [each.name for each in env.get_transformations()] == ["Print to Std. Out"]
    (job,) = capture.jobs
    assert job.method == "to_dataframe"
    (end,) = job.program.transformations
    assert (end.name, end.inputs[0].name, end.inputs[0].inputs[0].name) == (
        "DataFrame",
        "own",
        "shared",
    )


def test_the_schema_comes_from_the_declared_type(env: StreamExecutionEnvironment) -> None:
    with capturing() as capture:
        env.from_sequence(1, 3).map(lambda n: n, Types.INT()).to_dataframe()
    sink: Any = capture.jobs[0].program.transformations[0]
    assert sink.spec.sink.schema_json == "integer"


def test_while_planning_without_spark_nothing_can_be_asked(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=r"DataFrame\.show \(.*\): the program is only being planned"
    ):
        PlannedDataFrame().show()


def test_records_that_say_nothing(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        GraphError, match=r"to_dataframe\(\) .*: 'Map' .* has no declared record type"
    ):
        env.from_sequence(1, 3).map(lambda n: n).to_dataframe()
    with pytest.raises(GraphError, match="which has no columns"):
        env.from_sequence(1, 3).map(lambda n: n, Types.PICKLED_BYTE_ARRAY()).to_dataframe()


@pytest.mark.parametrize("schema", [5, ["a", "b"], {"a": "int"}])
def test_what_is_no_schema(env: StreamExecutionEnvironment, schema: Any) -> None:
    with pytest.raises(
        TypeError, match=r"to_dataframe\(\) .* takes a type of pyspark.sql.types, or DDL"
    ):
        env.from_sequence(1, 3).to_dataframe(schema)
