"""A job on Spark resumes in one process from its last checkpoint, and the other way round."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, Encoder, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.connectors.data_generator import DataGeneratorSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

LONGEST_S = 240
KEYS = 5


class Count(KeyedProcessFunction[int, int, str]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield f"{value} {self.count.value()}"


def run(folder: Path, target: str, parallelism: int, settings: dict[str, str]) -> list[str]:
    """Runs the job until it has read a number of records in two epochs, and stops it; returns the checkpoints."""
    configuration = Configuration()
    for key, value in {"execution.target": target, **settings}.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.set_max_parallelism(16)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=200)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    counted = stream.key_by(lambda n: n % KEYS).process(Count()).uid("counts")
    rows = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder())
    sink = rows.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    counted.sink_to(sink).uid("files")
    checkpoints: list[str] = []
    has_read = threading.Event()

    def listen(epoch: Any) -> None:
        if epoch.records_in:
            checkpoints.append(epoch.checkpoint)
        if len(checkpoints) >= 2:
            has_read.set()

    env.add_epoch_listener(listen)
    client = env.execute_async("either engine")
    assert has_read.wait(LONGEST_S)
    client.stop_with_savepoint(False, str(folder / "saved")).result(LONGEST_S)
    client.get_job_execution_result().result(LONGEST_S)
    return checkpoints


def written(folder: Path) -> list[tuple[int, int]]:
    lines = [
        line.split()
        for file in (folder / "out").rglob("*")
        if file.is_file() and not any(part[0] == "." for part in file.relative_to(folder).parts)
        for line in file.read_text("utf-8").splitlines()
    ]
    return sorted((int(value), int(count)) for value, count in lines)


def require_exact(found: list[tuple[int, int]]) -> None:
    assert [value for value, _ in found] == list(range(len(found)))
    for key in range(KEYS):
        counts = sorted(count for value, count in found if value % KEYS == key)
        assert counts == list(range(1, len(counts) + 1))


def test_a_job_can_be_moved_between_spark_and_one_process(tmp_path: Path) -> None:
    here = {"execution.checkpointing.dir": str(tmp_path / "checkpoints")}
    seen: list[str] = []
    written_before = 0
    for target, parallelism in (("spark", 2), ("local", 3), ("spark", 1), ("local", 2)):
        checkpoints = run(tmp_path, target, parallelism, here)
        assert not set(checkpoints) & set(seen)  # it resumes, and does not start over
        seen += checkpoints
        found = written(tmp_path)
        assert len(found) > written_before
        require_exact(found)
        written_before = len(found)


@pytest.mark.parametrize(("first", "second"), [("spark", "local"), ("local", "spark")])
def test_a_savepoint_of_one_engine_is_restored_by_the_other(
    tmp_path: Path, first: str, second: str
) -> None:
    run(tmp_path / "first", first, 2, {})
    (savepoint,) = (tmp_path / "first" / "saved").iterdir()
    run(tmp_path / "second", second, 1, {"execution.state-recovery.path": str(savepoint)})
    require_exact(sorted(written(tmp_path / "first") + written(tmp_path / "second")))
