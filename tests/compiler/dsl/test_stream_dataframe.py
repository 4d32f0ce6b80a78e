"""The requirements of `to_dataframe`, and the operators that it takes. tests/spark/test_dataframe_output.py runs it."""

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


def test_to_dataframe_moves_its_own_operators_out_of_the_program(
    env: StreamExecutionEnvironment,
) -> None:
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


def test_to_dataframe_takes_the_schema_from_the_declared_type(
    env: StreamExecutionEnvironment,
) -> None:
    with capturing() as capture:
        env.from_sequence(1, 3).map(lambda n: n, Types.INT()).to_dataframe()
    sink: Any = capture.jobs[0].program.transformations[0]
    assert sink.spec.sink.schema_json == "integer"


def test_a_dataframe_of_a_planned_program_refuses_actions(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=r"DataFrame\.show \(.*\): the program is only being planned"
    ):
        PlannedDataFrame().show()


def test_to_dataframe_refuses_a_stream_without_columns(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(
        GraphError, match=r"to_dataframe\(\) .*: 'Map' .* has no declared record type"
    ):
        env.from_sequence(1, 3).map(lambda n: n).to_dataframe()
    with pytest.raises(GraphError, match="which has no columns"):
        env.from_sequence(1, 3).map(lambda n: n, Types.PICKLED_BYTE_ARRAY()).to_dataframe()


@pytest.mark.parametrize("schema", [5, ["a", "b"], {"a": "int"}])
def test_to_dataframe_refuses_a_schema_of_the_wrong_kind(
    env: StreamExecutionEnvironment, schema: Any
) -> None:
    with pytest.raises(
        TypeError, match=r"to_dataframe\(\) .* takes a type of pyspark.sql.types, or DDL"
    ):
        env.from_sequence(1, 3).to_dataframe(schema)
