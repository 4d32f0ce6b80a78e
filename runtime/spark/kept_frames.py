"""Sinks that are DataFrames of Spark: written once all tasks of a job have succeeded.

The frames of the last stage stay with the executors, in memory and on disk, while the driver reads what is
for it; then each sink's batches are written from there by Spark's own writers, which let nothing be seen
before it is whole, where a format can. An executor that is lost in between has its tasks run again.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import add_note
from opchain.runtime.spark.dataframes import dataframe_of
from opchain.runtime.spark.exchange import collected, written_raw
from opchain.runtime.spark.relayed_frames import BatchesOfSink, FramesForDriver

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.spark.dataframe_ends import RelayedEnd
    from pyspark import RDD
    from pyspark.sql import SparkSession


@contextmanager
def kept(last_stage: RDD[bytes]) -> Iterator[RDD[bytes]]:
    """The frames of a job's last stage; within the block they are computed once."""
    from pyspark import RDD, StorageLevel  # noqa: PLC0415 - the module is loaded on executors
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415

    frames: RDD[bytes] = RDD(last_stage._jrdd, last_stage.ctx, NoOpSerializer())  # noqa: SLF001
    frames.setName(last_stage.name() or "frames").persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield frames
    finally:
        frames.unpersist()


def frames_for_driver(frames: RDD[bytes]) -> Iterator[bytes]:
    """Runs the job; the frames that the driver reads."""
    return collected(written_raw(frames.mapPartitions(FramesForDriver())))


def write_dataframes(frames: RDD[bytes], ends: Sequence[RelayedEnd], session: SparkSession) -> None:
    """Writes each sink's records.

    Raises:
        Exception: What Spark's writer says; notes name the sink, and those that were written before.
    """
    written: list[str] = []
    for end in ends:
        name = f"'{end.operator.name}' ({end.operator.call_site})"
        batches = written_raw(frames.mapPartitions(BatchesOfSink(end.tasks, end.operator.index)))
        sink: Any = end.sink
        try:
            sink.write(dataframe_of(batches, end.record_type, session))
        except Exception as error:
            add_note(error, f"while writing {name}, after all tasks have succeeded")
            if written:
                add_note(error, f"already written: {', '.join(written)}")
            raise
        written.append(name)
