"""Faults of unbounded jobs that can be tested on a local master."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Encoder, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.errors import CheckpointError, StreamError
from opchain.runtime.spark.formats import SparkSource
from opchain.runtime.spark.streaming.streaming_job import IGNORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

HUGE = 32 * 1024 * 1024


class Count(KeyedProcessFunction[str, str, str]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: Any) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value} {self.count.value()}"


def write(folder: Path, name: str, words: list[str]) -> Path:
    (folder / "input").mkdir(exist_ok=True)
    path = folder / "input" / name
    path.write_text("".join(json.dumps({"word": word}) + "\n" for word in words))
    return path


def count_words(folder: Path, before: Callable[[str], Any] = str, **settings: str) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
    configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = SparkSource(
        "json",
        {"maxFilesPerTrigger": "1", **settings},
        schema="word string",
        path=str(folder / "input"),
        is_streaming=True,
    )
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    words = rows.map(lambda row: before(row[0])).uid("before")
    counts = words.key_by(lambda word: word).process(Count()).uid("count")
    sink = FileSink.for_row_format(str(folder / "output"), Encoder.simple_string_encoder())
    files = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    counts.sink_to(files).uid("files")
    env.execute("count words")


def written(folder: Path) -> Counter[str]:
    files = [path for path in (folder / "output").rglob("*") if path.is_file()]
    return Counter(
        line
        for path in files
        if not path.name.startswith(".")
        for line in path.read_text().splitlines()
    )


def counted(*words: str) -> Counter[str]:
    seen: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for word in words:
        seen[word] += 1
        lines[f"{word} {seen[word]}"] += 1
    return lines


def raises() -> None:
    raise RuntimeError("once")


@pytest.mark.parametrize(
    "end",
    [
        raises,
        lambda: os.kill(os.getpid(), signal.SIGKILL),
        lambda: os._exit(7),
        lambda: sys.exit(3),
    ],
    ids=["raises", "SIGKILL", "os._exit", "sys.exit"],
)
def test_a_task_that_ends_in_the_middle_is_retried(tmp_path: Path, end: Callable[[], None]) -> None:
    def before(word: str) -> str:
        if word == "b":
            with suppress(FileExistsError):
                (tmp_path / "ended").touch(exist_ok=False)
                end()
        return word

    write(tmp_path, "1", ["a", "b", "a"])
    count_words(tmp_path, before)
    assert (tmp_path / "ended").exists()
    assert written(tmp_path) == counted("a", "b", "a")


def test_a_truncated_log_of_spark_is_an_error_until_it_is_repaired(tmp_path: Path) -> None:
    write(tmp_path, "1", ["a", "b"])
    count_words(tmp_path)
    (offsets,) = (tmp_path / "checkpoints" / "spark" / "offsets").glob("[0-9]*")
    (offsets.parent / f".{offsets.name}.crc").unlink()
    whole = offsets.read_bytes()
    write(tmp_path, "2", ["a"])
    for cut in (b"", whole[: len(whole) // 2]):
        offsets.write_bytes(cut)
        with pytest.raises(StreamError):
            count_words(tmp_path)
        assert written(tmp_path) == counted("a", "b")
    offsets.write_bytes(whole)
    count_words(tmp_path)
    assert written(tmp_path) == counted("a", "b", "a")


def test_input_that_was_deleted_before_it_was_read_is_an_error(tmp_path: Path) -> None:
    def fail(word: str) -> str:
        raise ValueError(f"{word} is not welcome")

    write(tmp_path, "1", ["a"])
    count_words(tmp_path)
    gone = write(tmp_path, "2", ["b"])
    with pytest.raises(ValueError, match="b is not welcome"):
        count_words(tmp_path, fail)
    gone.unlink()  # Spark's log says that the next epoch reads it
    write(tmp_path, "3", ["c"])
    with pytest.raises(
        CheckpointError, match=r"1 of its 1 files are gone: file:.*/input/2; put them back"
    ):
        count_words(tmp_path)
    assert written(tmp_path) == counted("a")
    write(tmp_path, "2", ["b"])
    count_words(tmp_path)
    assert written(tmp_path) == counted("a", "b", "c")


def test_deleted_input_is_skipped_if_that_is_allowed(session: SparkSession, tmp_path: Path) -> None:
    def fail(word: str) -> str:
        raise ValueError(f"{word} is not welcome")

    gone = write(tmp_path, "1", ["a"])
    with pytest.raises(ValueError, match="a is not welcome"):
        count_words(tmp_path, fail)
    gone.unlink()
    write(tmp_path, "2", ["b"])
    session.conf.set(IGNORED, "true")
    try:
        count_words(tmp_path)
    finally:
        session.conf.unset(IGNORED)
    assert written(tmp_path) == counted("b")


def test_one_hot_key_and_one_huge_record_are_processed(tmp_path: Path) -> None:
    def before(word: str) -> str:
        return word * HUGE if word == "x" else word

    words = ["hot" if number % 10 else f"k{number}" for number in range(20_000)]
    write(tmp_path, "1", [*words, "x"])
    count_words(tmp_path, before)
    found = written(tmp_path)
    assert found.pop(f"{'x' * HUGE} 1") == 1
    assert found == counted(*words)
