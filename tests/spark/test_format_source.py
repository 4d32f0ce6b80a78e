"""SparkSource: files, Python Data Sources and other formats are read as streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import notes_of

from opchain.common import Configuration, Row, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.spark import SparkSource

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NO_WATERMARKS = WatermarkStrategy.no_watermarks()


def read(source: Any, parallelism: int = 2) -> list[Any]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    stream = env.from_source(source, NO_WATERMARKS, "rows").map(lambda row: row)
    with stream.execute_and_collect() as records:
        return sorted(records, key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_records_are_read_in_a_format_of_spark(
    session: SparkSession, tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / "data")
    session.sql("select 1 as id, 'a' as word union all select 2, null").write.format(name).save(
        path
    )
    assert read(SparkSource(name, schema="id int, word string", path=path)) == [
        Row(id=1, word="a"),
        Row(id=2, word=None),
    ]


@pytest.mark.spark
def test_a_python_data_source_is_given_by_its_class(session: SparkSession) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceReader  # noqa: PLC0415

    class Squares(DataSource):
        @classmethod
        def name(cls) -> str:
            return "squares"

        def schema(self) -> str:
            return "number int, square int"

        def reader(self, schema: Any) -> DataSourceReader:
            return SquaresReader(int(self.options["count"]))

    class SquaresReader(DataSourceReader):
        def __init__(self, count: int) -> None:
            self.count = count

        def read(self, partition: Any) -> Any:
            yield from ((number, number**2) for number in range(self.count))

    expected = [Row(number=number, square=number**2) for number in range(3)]
    assert read(SparkSource(Squares, {"count": 3})) == expected
    assert read(SparkSource("squares", {"count": 3})) == expected


@pytest.mark.spark
def test_an_error_of_spark_about_a_format_names_the_source(session: SparkSession) -> None:
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND") as failure:
        read(SparkSource("no-such-format"))
    assert "while making the DataFrame of 'Source: rows'" in notes_of(failure.value)


def test_a_struct_type_determines_the_type_of_the_stream() -> None:
    class Schema:
        def jsonValue(self) -> Any:  # noqa: N802 - as pyspark has it
            field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
            return {"type": "struct", "fields": [field]}

    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(SparkSource("csv", schema=Schema()), NO_WATERMARKS, "rows")
    assert stream.get_type() == Types.ROW_NAMED(["id"], [Types.LONG()])
    untyped = env.from_source(SparkSource("csv", schema="id long"), NO_WATERMARKS, "rows")
    assert untyped.get_type() == Types.PICKLED_BYTE_ARRAY()


def test_options_are_not_pickled() -> None:
    source = SparkSource("jdbc", {"password": "secret"}, path="somewhere")
    assert "secret" not in repr(source.__getstate__())


@pytest.mark.parametrize("given", [5, int, None])
def test_an_invalid_format_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="it takes a name such as 'parquet', or a class derived"):
        SparkSource(given)


def test_a_spark_source_is_refused_in_process() -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_source(SparkSource("csv"), NO_WATERMARKS, "rows").print()
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"'Source: rows' .* is SparkSource\(csv\), which only a job on Spark",
    ):
        env.execute()
