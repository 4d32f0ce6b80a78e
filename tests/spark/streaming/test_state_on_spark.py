"""A savepoint written from a DataFrame starts a job on Spark, and its state is read as a DataFrame again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import opchain.state
from opchain.common import Configuration, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor
from opchain.runtime.connectors.data_generator import DataGeneratorSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark]

FEW = 100


class Count(KeyedProcessFunction[int, int, tuple[int, int]]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int]]:
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


def first_records(checkpoints: Path, savepoint: Path) -> list[tuple[int, int]]:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(checkpoints))
    configuration.set_string("execution.state-recovery.path", str(savepoint))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)  # so that the first records have all keys
    env.set_max_parallelism(16)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=100)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    counts = stream.key_by(lambda n: n % 5).process(Count()).uid("counts")
    found = []
    with counts.execute_and_collect() as records:
        for record in records:
            found.append(record)
            if len(found) >= FEW:
                break
    return found


def test_a_savepoint_can_be_written_from_a_dataframe(session: Any, tmp_path: Path) -> None:
    frame = session.createDataFrame([(key, 1000 * key) for key in range(5)], "key long, value long")
    opchain.state.write(
        tmp_path / "first", frame, operator="counts", state="count", max_parallelism=16
    )
    found = first_records(tmp_path / "job", tmp_path / "first")
    assert {value % 5: count for value, count in reversed(found)} == {
        key: 1000 * key + 1 for key in range(5)
    }

    rows = opchain.state.read(tmp_path / "job", "counts", "count")
    table = rows.to_spark(session)
    assert table.rdd.getNumPartitions() > 1
    assert dict(table.dtypes)["value"] == "bigint"
    by_partition = table.rdd.mapPartitions(
        lambda part: [sorted({row.key_group for row in part})]
    ).collect()
    groups = [group for part in by_partition for group in part]
    assert groups == sorted(groups)
    assert {row.key: row.value for row in table.collect()} == {row.key: row.value for row in rows}

    mended = table.selectExpr("operator", "state", "kind", "key", "value * 0 as value")
    opchain.state.write(tmp_path / "mended", mended, base=tmp_path / "job")
    again = first_records(tmp_path / "again", tmp_path / "mended")
    assert {value % 5: count for value, count in reversed(again)} == dict.fromkeys(range(5), 1)
    assert min(value for value, _ in again) > 0  # positions of sources are included
