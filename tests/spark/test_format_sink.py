"""SparkSink: records are written once after all tasks have succeeded, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, RecordSchemaError, TaskFailedError
from opchain.spark import SparkSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
ROWS = [(1, "a"), (2, None), (3, "c")]


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    return env


def contents(session: SparkSession, name: str, path: Path) -> list[Any]:
    schema = "id int, word string"
    return sorted(map(tuple, session.read.schema(schema).format(name).load(str(path)).collect()))


@pytest.mark.spark
@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_records_are_written_in_a_format_of_spark(
    session: SparkSession, tmp_path: Path, name: str
) -> None:
    env = environment()
    sink = SparkSink(name, path=str(tmp_path / "out"))
    env.from_collection(ROWS, ROW).rebalance().map(lambda row: row, ROW).sink_to(sink)
    env.execute()
    assert contents(session, name, tmp_path / "out") == ROWS


@pytest.mark.spark
def test_two_sinks_and_a_collected_stream_share_one_run(
    session: SparkSession, tmp_path: Path
) -> None:
    ran = session.sparkContext.accumulator(0)
    env = environment()
    numbers = env.from_sequence(1, 6)
    early = numbers.map(lambda n: (n, "early"))
    early.sink_to(SparkSink("json", schema="id int, word string", path=str(tmp_path / "early")))

    def counted(value: Any) -> Any:
        ran.add(1)
        return value

    late = early.key_by(lambda pair: pair[0]).map(counted)
    late.sink_to(SparkSink("json", schema="id int, word string", path=str(tmp_path / "late")))
    with late.execute_and_collect() as records:
        assert sorted(records) == [(n, "early") for n in range(1, 7)]
    for folder in ("early", "late"):
        written = contents(session, "json", tmp_path / folder)
        assert written == [(n, "early") for n in range(1, 7)]
    assert ran.value == 6


@pytest.mark.spark
def test_a_failed_job_writes_nothing(session: SparkSession, tmp_path: Path) -> None:
    env = environment(1)
    sink = SparkSink("parquet", schema="n int", path=str(tmp_path / "out"))
    env.from_collection([(1,), ("two",)]).sink_to(sink)
    with pytest.raises(
        RecordSchemaError, match="column 'n' got 'two', of type str, but expects int"
    ):
        env.execute()
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_modes_options_and_partition_columns_are_passed_to_spark(
    session: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "out")
    for mode, count in (("error", 3), ("append", 6), ("ignore", 6), ("overwrite", 3)):
        env = environment(1)
        sink = SparkSink("csv", mode, {"header": True}, partition_by=["word"], path=path)
        env.from_collection(ROWS, ROW).sink_to(sink)
        env.execute()
        assert session.read.option("header", True).csv(path).count() == count
    assert (tmp_path / "out" / "word=a").is_dir()


@pytest.mark.spark
def test_an_error_of_spark_about_a_write_names_the_sink(
    session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    env = environment(1)
    env.from_collection(ROWS, ROW).sink_to(SparkSink("csv", path=str(tmp_path / "out"))).name(
        "rows"
    )
    with pytest.raises(
        TaskFailedError, match=r"'rows: Writer' .* could not be written, .*PATH_ALREADY_EXISTS"
    ):
        env.execute()


@pytest.mark.spark
def test_a_python_data_source_is_given_by_its_class(session: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage  # noqa: PLC0415

    class Lines(DataSource):
        @classmethod
        def name(cls) -> str:
            return "lines"

        def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
            return LinesWriter(self.options["path"])

    class LinesWriter(DataSourceWriter):
        def __init__(self, path: str) -> None:
            self.path = path

        def write(self, iterator: Any) -> WriterCommitMessage:
            with Path(self.path).open("a") as file:
                file.writelines(f"{row.id} {row.word}\n" for row in iterator)
            return WriterCommitMessage()

    env = environment(1)
    path = tmp_path / "lines.txt"
    env.from_collection(ROWS, ROW).sink_to(SparkSink(Lines, "append", path=str(path)))
    env.execute()
    assert path.read_text().splitlines() == ["1 a", "2 None", "3 c"]


@pytest.mark.spark
def test_a_stream_without_known_columns_is_refused(session: SparkSession) -> None:
    env = environment(1)
    env.from_sequence(1, 2).map(lambda n: n).sink_to(SparkSink("noop")).name("rows")
    with pytest.raises(GraphError, match=r"'rows: Writer' .* does not know the columns"):
        env.execute()


def test_options_are_not_pickled() -> None:
    sink = SparkSink("jdbc", options={"password": "secret"}, schema="n int")
    assert "secret" not in repr(sink.__getstate__())


def test_an_invalid_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="got the mode 'replace'; the modes are append, overwrite"):
        SparkSink("csv", "replace")
