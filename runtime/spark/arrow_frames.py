"""Arrow sinks: DataFrames of Spark from the last stage of a job, written once all tasks have succeeded.

The frames of the last stage stay with the executors, in memory and on disk, while the driver reads what is
for it; then each sink's batches are written from there by Spark's own writers, which let nothing be seen
before it is whole, where a format can. An executor that is lost in between has its tasks run again. Sinks with
committers of their own are committed after these.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.type_mapping import columns_of
from opchain.runtime.connectors.arrow_sink import WrittenSink
from opchain.runtime.errors import TaskFailedError
from opchain.runtime.program.vertex_program import ARROW_SINK
from opchain.runtime.spark.dataframes import dataframe_of
from opchain.runtime.spark.exchange import collected, from_frame, written_raw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession

    from opchain.runtime.records.elements import Buffer
    from opchain.runtime.spark.dataframes import ArrowSinkEnd


def arrow_batches(buffers: Iterable[Buffer | bytes]) -> Iterator[bytes]:
    """The batches of the one sink that a DataFrame has; nobody is there to hear of reports."""
    for item in buffers:
        if not isinstance(item, bytes) and item.target == ARROW_SINK:
            yield item.payload


class FramesForDriver:
    """Leaves out the batches."""

    def __call__(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """The frames that the driver reads."""
        return (frame for frame in frames if from_frame(frame).target != ARROW_SINK)


class BatchesOfSink:
    """The batches of one sink: operator `operator` of the tasks `tasks`."""

    def __init__(self, tasks: range, operator: int) -> None:
        self.tasks = tasks
        self.operator = operator

    def __call__(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Their bytes."""
        for frame in frames:
            target, operator, task, _, batch, _ = from_frame(frame)
            if target == ARROW_SINK and operator == self.operator and task in self.tasks:
                yield bytes(batch)


@contextmanager
def persisted(last_stage: RDD[bytes]) -> Iterator[RDD[bytes]]:
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


def write_dataframes(
    frames: RDD[bytes], ends: Sequence[ArrowSinkEnd], session: SparkSession
) -> None:
    """Writes each sink's records.

    Raises:
        TaskFailedError: What Spark's writer says, which is its cause; names those that were written before.
    """
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001
    # Spark looks for Python Data Sources in the active session of a thread, and this thread may have none.
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # noqa: SLF001
    written: list[str] = []
    for end in ends:
        name = f"'{end.operator.name}' ({end.operator.call_site})"
        batches = written_raw(frames.mapPartitions(BatchesOfSink(end.tasks, end.operator.index)))
        assert isinstance(end.sink, WrittenSink), f"{name} is no sink of a job"
        try:
            end.sink.write(dataframe_of(batches, columns_of(end.record_type), session))
        except Exception as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise TaskFailedError(
                f"{name} could not be written, although all tasks succeeded: {reason[0]}; "
                f"written before: "
                f"{', '.join(written) or 'nothing'}"
            ) from error
        written.append(name)
