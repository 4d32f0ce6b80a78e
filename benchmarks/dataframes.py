"""Compares from_dataframe -> map -> to_dataframe with the same function in Spark's own APIs.

    python benchmarks/dataframes.py [--rows 1000000] [--runs 3]

Rows have an int, a string and a double. They are cached in memory, and results go to the format `noop`, on local[2].
The function increments the int and lengthens the string. `mapInArrow` runs once with a Python function per row, as
opchain's map does, and once with Arrow's compute functions, as opchain's map_batches on columns does. `mapInArrow`
needs pandas, and is skipped if pandas is not installed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from opchain.common import Row, Types
from opchain.datastream import StreamExecutionEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id bigint, word string, price double"
ROW = Types.ROW_NAMED(["id", "word", "price"], [Types.LONG(), Types.STRING(), Types.DOUBLE()])
PARTITIONS = 4


def longer(row: Any) -> Any:
    """The function, on a row: used by all contenders that do not work on columns."""
    return (row.id + 1, row.word + "!", row.price)


def longer_row(row: Any) -> Any:
    """The function, on a row, with a Row with field names as its result."""
    return Row(id=row.id + 1, word=row.word + "!", price=row.price)


def longer_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The function, on columns."""
    return pa.record_batch(
        [
            pc.add(batch.column(0), 1),
            pc.binary_join_element_wise(batch.column(1), "!", ""),
            batch.column(2),
        ],
        names=batch.schema.names,
    )


def longer_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow, on columns."""
    return map(longer_columns, batches)


def longer_by_row(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function for mapInArrow, row by row."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        rows = [(i + 1, word + "!", price) for i, word, price in zip(*columns, strict=True)]
        yield pa.record_batch(
            [pa.array(column) for column in zip(*rows, strict=True)], names=batch.schema.names
        )


def ways(session: SparkSession, data: DataFrame) -> dict[str, Callable[[], DataFrame]]:
    """The contenders: by name, a function that returns the resulting DataFrame."""

    def stream() -> Any:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(PARTITIONS)
        return env.from_dataframe(data)

    found: dict[str, Callable[[], DataFrame]] = {
        "opchain map, tuples": lambda: stream().map(longer).to_dataframe(SCHEMA),
        "opchain map, Rows": lambda: stream().map(longer_row, ROW).to_dataframe(),
        "opchain map_batches, lists": lambda: (
            stream().map_batches(lambda rows: list(map(longer, rows))).to_dataframe(SCHEMA)
        ),
        "opchain map_batches, arrow": lambda: (
            stream().map_batches(longer_columns, ROW, "arrow").to_dataframe()
        ),
        "rdd.map and createDataFrame": lambda: session.createDataFrame(
            data.rdd.map(longer), SCHEMA
        ),
    }
    try:
        import pandas as pd  # noqa: PLC0415 - only mapInArrow wants it
    except ImportError:
        return found
    del pd
    found["mapInArrow, row by row"] = lambda: data.mapInArrow(longer_by_row, SCHEMA)
    found["mapInArrow, columns"] = lambda: data.mapInArrow(longer_batches, SCHEMA)
    return found


def main() -> None:
    """Prints the median seconds and the records per second of each contender."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        "--master local[2] --conf spark.ui.enabled=false pyspark-shell"
    )
    from opchain.runtime.spark.session import active_or_new_session  # noqa: PLC0415

    session = active_or_new_session()
    data = session.range(0, arguments.rows, 1, PARTITIONS).selectExpr(
        "id", "concat('word ', id % 1000) as word", "id * 0.5D as price"
    )
    data.cache().count()
    took: dict[str, list[float]] = {}
    for _ in range(arguments.runs + 1):
        for name, make in ways(session, data).items():
            started = time.perf_counter()
            make().write.format("noop").mode("overwrite").save()
            took.setdefault(name, []).append(time.perf_counter() - started)
    for name, seconds in took.items():
        median = statistics.median(seconds[1:])  # the first run warms up
        print(f"{name:30} {median:6.2f} s {arguments.rows / median:12,.0f} records/s")


if __name__ == "__main__":
    main()
