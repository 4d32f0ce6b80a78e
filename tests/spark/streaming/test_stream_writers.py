"""Every sink of an unbounded job writes each record once, even if Spark repeats its last micro-batch."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres_server import Server, postgres_server

from opchain.common import Configuration, Encoder, Row, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.connectors.jdbc import JdbcSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.errors import SinkError, UnsupportedFeatureError
from opchain.runtime.spark.formats import SparkSource
from opchain.spark import SparkSink

pytest.importorskip("pyspark")

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream import DataStream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

ROW = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])


class Written(WriterCommitMessage):
    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows


class Folder(DataSource):
    """A file per micro-batch, with its number in the name."""

    @classmethod
    def name(cls) -> str:
        return "folder-of-batches"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's
        assert not overwrite
        return FolderWriter(self.options["path"], schema.names)


class FolderWriter(DataSourceStreamWriter):
    def __init__(self, path: str, names: list[str]) -> None:
        self.path = path
        self.names = names

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return Written([[row[name] for name in self.names] for row in iterator])

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 - Spark's
        rows = [row for message in messages for row in message.rows]
        folder = Path(self.path)
        folder.mkdir(exist_ok=True)
        with (folder / "log").open("a") as log:
            log.write(f"commit {batchId}\n")
        (folder / f"{batchId}.json").write_text(json.dumps(sorted(rows)))

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 - Spark's
        folder = Path(self.path)
        folder.mkdir(exist_ok=True)
        (folder / "aborted").write_text(f"{batchId} {messages}")


class ArrowFolder(Folder):
    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's
        return ArrowFolderWriter(self.options["PATH"], schema.names)


class ArrowFolderWriter(DataSourceStreamArrowWriter, FolderWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return Written([list(row.values()) for batch in iterator for row in batch.to_pylist()])


class MutedFolder(Folder):
    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's
        return MutedWriter(self.options["path"], schema.names)


class MutedWriter(FolderWriter):
    def write(self, iterator: Iterator[Any]) -> Any:
        return "done"


class Count(KeyedProcessFunction[str, str, Row]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: str, ctx: Any) -> Iterator[Row]:
        self.count.update((self.count.value() or 0) + 1)
        yield Row(value, self.count.value())


def environment(folder: Path) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
    configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    env.set_max_parallelism(16)
    return env


def write(folder: Path, name: str, *words: str) -> None:
    (folder / "input").mkdir(exist_ok=True)
    hidden = folder / "input" / f".{name}"
    hidden.write_text("".join(json.dumps({"word": word}) + "\n" for word in words))
    # Spark reads the oldest file first.
    os.utime(hidden, (1_700_000_000 + 10 * int(name),) * 2)
    hidden.rename(folder / "input" / name)


def counts(env: StreamExecutionEnvironment, folder: Path) -> DataStream[Row]:
    source = SparkSource(
        "json",
        {"maxFilesPerTrigger": "1"},
        schema="word string",
        path=str(folder / "input"),
        is_streaming=True,
    )
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    words = rows.map(lambda row: row[0]).key_by(lambda word: word)
    return words.process(Count(), ROW).uid("count")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as running:
        yield running


def test_no_sink_writes_a_repeated_micro_batch_twice(
    server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.clear()
    server.run("CREATE TABLE words (word text, n int)")

    def run() -> list[tuple[str, int]]:
        env = environment(tmp_path)
        stream = counts(env, tmp_path)
        files = FileSink.for_row_format(str(tmp_path / "files"), Encoder.simple_string_encoder())
        files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        stream.map(lambda row: f"{row[0]} {row[1]}").sink_to(files.build()).uid("files")
        statement = "INSERT INTO words VALUES (?, ?)"
        stream.add_sink(JdbcSink.sink(statement, ROW, server.options)).uid("database")
        stream.sink_to(SparkSink(Folder, path=str(tmp_path / "folder"))).uid("folder")
        stream.map(lambda row: f"printed {row[0]} {row[1]}").print()
        with stream.execute_and_collect() as records:
            return sorted(tuple(row) for row in records)

    def kept() -> dict[str, list[Any]]:
        files = [path for path in (tmp_path / "files").iterdir() if path.is_file()]
        batches = sorted((tmp_path / "folder").glob("*.json"))
        return {
            "files": sorted(line for path in files for line in path.read_text().splitlines()),
            "database": server.rows("SELECT word, n FROM words ORDER BY word, n"),
            "folder": [json.loads(path.read_text()) for path in batches],
        }

    def printed() -> list[str]:
        lines = capfd.readouterr().out.splitlines()
        return sorted(line for line in lines if "printed" in line)

    write(tmp_path, "1", "a", "b", "a")
    write(tmp_path, "2", "b", "c")
    assert run() == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)]
    first = kept()
    assert first == {
        "files": ["a 1", "a 2", "b 1", "b 2", "c 1"],
        "database": [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)],
        "folder": [[["a", 1], ["a", 2], ["b", 1]], [["b", 2], ["c", 1]]],
    }
    assert len(printed()) == 5
    # Files of a killed run, and files of other jobs.
    lineage = (tmp_path / "checkpoints" / "lineage").read_text()
    (staging,) = (tmp_path / "files" / ".opchain").glob(f"{lineage}.*")
    mine = staging / ".part-killed-0.inprogress"
    other = staging.with_name(f"other{staging.name}") / ".part-alive-0.inprogress"
    other.parent.mkdir()
    for path in (mine, other):
        path.write_text("half of a rec")
    operator = server.rows("SELECT operator FROM opchain_commits")[0][0]
    for name, number in ((lineage, 1), ("other", 2)):
        batch = f"00000000-0000-0000-0000-00000000000{number}"
        server.run(
            f"INSERT INTO opchain_batches SELECT '{batch}', '{name}', '{operator}', relname "
            "FROM pg_class WHERE relkind = 'r' AND relname LIKE 'opchain\\_staged\\_%'"
        )
    # As if the driver had died before Spark recorded the end of the micro-batch.
    commits = tmp_path / "checkpoints" / "spark" / "commits"
    for name in ("1", ".1.crc"):
        (commits / name).unlink()
    assert run() == []
    assert ((commits / "1").exists(), mine.exists(), other.exists()) == (True, False, True)
    other.unlink()
    assert server.rows("SELECT lineage FROM opchain_batches") == [("other",)]
    server.run("DELETE FROM opchain_batches")
    assert kept() == first
    assert printed() == []
    log = (tmp_path / "folder" / "log").read_text().splitlines()
    assert sorted(set(log)) == ["commit 0", "commit 1"]  # again with the same number
    write(tmp_path, "3", "a")
    assert run() == [("a", 3)]
    assert kept()["database"] == [*first["database"][:2], ("a", 3), *first["database"][2:]]
    assert kept()["folder"] == [*first["folder"], [["a", 3]]]
    assert server.waiting() == 0


def test_a_stream_writer_may_take_arrow_batches(tmp_path: Path) -> None:
    write(tmp_path, "1", "a", "a")
    env = environment(tmp_path)
    counts(env, tmp_path).sink_to(SparkSink(ArrowFolder, path=str(tmp_path / "folder")))
    env.execute()
    assert json.loads((tmp_path / "folder" / "0.json").read_text()) == [["a", 1], ["a", 2]]


def test_a_failed_epoch_is_aborted(tmp_path: Path) -> None:
    write(tmp_path, "1", "a")
    env = environment(tmp_path)
    bad = counts(env, tmp_path).map(lambda row: Row(row[0], "one"), ROW)
    bad.sink_to(SparkSink(Folder, path=str(tmp_path / "folder"))).name("bad")
    with pytest.raises(TypeError, match=r"'one' is declared as INT, and is a str"):
        env.execute()
    assert (tmp_path / "folder" / "aborted").read_text() == "0 []"


def test_the_error_names_a_writer_that_returns_no_commit_message(tmp_path: Path) -> None:
    write(tmp_path, "1", "a")
    env = environment(tmp_path)
    counts(env, tmp_path).sink_to(SparkSink(MutedFolder, path=str(tmp_path / "folder")))
    with pytest.raises(
        SinkError, match=r"MutedWriter\.write returned 'done'; it must return a WriterCommit"
    ):
        env.execute()


@pytest.mark.parametrize(
    "sink",
    [
        SparkSink("parquet", path="somewhere"),
        SparkSink(Folder, "overwrite", path="somewhere"),
    ],
)
def test_a_data_source_without_a_stream_writer_is_refused(tmp_path: Path, sink: SparkSink) -> None:
    write(tmp_path, "1", "a")
    env = environment(tmp_path)
    counts(env, tmp_path).sink_to(sink)
    with pytest.raises(
        UnsupportedFeatureError, match="or a Python Data Source with a streamWriter"
    ):
        env.execute()


def test_options_are_not_pickled() -> None:
    sink = SparkSink(Folder, options={"password": "secret"}, schema="n int")
    assert b"secret" not in pickle.dumps(sink)
