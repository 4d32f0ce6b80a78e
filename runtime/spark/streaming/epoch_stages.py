"""The tasks of an epoch as one Spark job: the compiled stages over the rows of a micro-batch.

Executors import this module, but not the driver's part (streaming_job.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.restore_plan import operators_of, plan_restore
from opchain.runtime.columnar.spark_types import SparkType, arrow_schema, pyarrow
from opchain.runtime.epochs.live_tasks import RestoredVertex, live_tasks, restored_vertices
from opchain.runtime.job.progress import stage_name
from opchain.runtime.records.elements import MIN_WATERMARK, Buffer
from opchain.runtime.shipping.outcome import JobOutcome, read_outcome
from opchain.runtime.spark.dataframes import arrow_batches, has_large_types
from opchain.runtime.spark.exchange import (
    addressed,
    collected,
    from_frame,
    shuffled,
    written_raw,
)
from opchain.runtime.spark.job_failure import failure_of
from opchain.runtime.spark.stage_progress import LiveCounts, sending_counts
from opchain.runtime.spark.stage_tasks import ShippedJob, ShippedVertex, StageTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark import RDD
    from pyspark.sql import DataFrame

    from opchain.runtime.checkpoint.epoch import Epoch
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.epochs.delivered_sources import DeliveredSource
    from opchain.runtime.program.vertex_program import JobProgram, StageProgram
    from opchain.runtime.spark.remote_error import ErrorSeal
    from opchain.runtime.spark.stage_rdds import StageRdds
    from opchain.runtime.spark.streaming.stream_writers import StreamWriters


class Deliver:
    """The function of the first stage of an epoch: turns Arrow batches into buffers for the tasks of sources.

    Each partition of a DataFrame goes to one subtask, in turn, as an Arrow stream of its columns. A split goes to its
    subtask. So the input of a task depends only on the micro-batch.

    Args:
        columns: Spark's schema of the rows, as JSON text.
        sources: First task and parallelism of each source, by its number.
        following: The next stage, which has the sources or forwards buffers to them.
        has_large_types: Whether strings and bytes have 64-bit offsets.
        seal: Signs exceptions for the driver.
    """

    def __init__(
        self,
        columns: str,
        sources: tuple[tuple[int, int], ...],
        following: StageProgram,
        *,
        has_large_types: bool,
        seal: ErrorSeal,
    ) -> None:
        self.columns = columns
        self.sources = sources
        self.following = following
        self.has_large_types = has_large_types
        self.seal = seal

    def __call__(self, partition: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The frames of one partition of the micro-batch."""
        return addressed(self._buffers(partition, chunks), self.following)

    def _buffers(self, partition: int, chunks: Iterable[bytes]) -> Iterator[Buffer]:
        sent: dict[int, int] = {}
        try:
            for task, payload in self._deliveries(partition, chunks):
                sequence = sent.get(task, 0)
                sent[task] = sequence + 1
                yield Buffer(task, MIN_WATERMARK, partition, sequence, payload)
        except Exception as error:
            raise self.seal.sealed(error) from error

    def _deliveries(self, partition: int, chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        arrow = pyarrow()
        schema = arrow_schema(SparkType.parse(self.columns), large=self.has_large_types)
        for chunk in chunks:
            batch = arrow.ipc.read_record_batch(arrow.py_buffer(chunk), schema)
            if not batch.num_rows:
                continue
            sources = batch.column("source").to_pylist()
            rows = rows_column(sources[0])
            if rows in schema.names:
                first_task, parallelism = self.sources[sources[0]]
                yield first_task + partition % parallelism, _stream(batch.column(rows))
                continue
            # The splits of all sources that have positions come in one batch.
            subtasks, splits = batch.column("subtask").to_pylist(), batch.column("data")
            for source, subtask, split in zip(sources, subtasks, splits.to_pylist(), strict=True):
                yield self.sources[source][0] + subtask, split


def rows_column(source: int) -> str:
    """The name of the column for the rows of a DataFrame; each DataFrame has its own column."""
    return f"rows {source}"


def _stream(rows: Any) -> bytes:
    """An array of structs as an Arrow stream, which contains its schema."""
    arrow = pyarrow()
    batch = arrow.RecordBatch.from_struct_array(rows)
    out = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = out.getvalue().to_pybytes()
    return data


class EpochStageTasks(StageTasks):
    """The function of a stage in one epoch.

    `restored` has the restored state of each vertex, by the first task of the vertex.
    """

    def __init__(
        self,
        job: ShippedJob,
        stage: StageProgram,
        following: StageProgram | None,
        vertices: tuple[ShippedVertex, ...],
        *,
        run_id: str,
        epoch: Epoch,
        storage: CheckpointStorage,
        restored: dict[int, RestoredVertex | None],
    ) -> None:
        super().__init__(job, stage, following, vertices)
        self.run_id = run_id
        self.epoch = epoch
        self.storage = storage
        self.restored = restored

    def _run_task(
        self,
        task: int,
        buffers: Iterator[Buffer],
        frames: Iterable[bytes],  # noqa: ARG002 - the input of an epoch consists of buffers
    ) -> Iterator[Buffer]:
        """Runs the epoch of a task."""
        vertex = self._vertex_of(task)
        environment = replace(self._environment(), sink_writers=vertex.sink_writers)
        tasks = live_tasks(self.run_id)
        running = tasks.take(
            task,
            self.restored[vertex.first_task],
            self.storage,
            lambda: (self._load(task), environment),
            self.epoch.timestamp_ms,
        )
        with sending_counts(self.job.live, task, running.counts_now):
            yield from running.run_epoch(self.epoch, buffers, self.storage, environment.attempt_id)
        if self.epoch.drains:
            running.close()
        else:
            tasks.keep(running)
        self.job.count(running)


class EpochStages:
    """The `EpochTasks` of a job on Spark.

    Args:
        job: The job.
        run_id: Identifies this run.
        rdds: Creates the RDDs of its stages.
        shipped: The parts that its tasks share.
        storage: The checkpoint storage, to which tasks write their state.
        writers: Its sinks that are stream writers of Spark.
        live: Takes the counts of running tasks.
        cancel_stages: Ends the Spark jobs of the current epoch.
    """

    def __init__(
        self,
        job: JobProgram,
        run_id: str,
        rdds: StageRdds,
        shipped: ShippedJob,
        *,
        storage: CheckpointStorage,
        writers: StreamWriters,
        live: LiveCounts,
        cancel_stages: Callable[[], None],
    ) -> None:
        self.restarts = 0
        self._job = job
        self._run_id = run_id
        self._rdds = rdds
        self._shipped = shipped
        self._storage = storage
        self._writers = writers
        self._live = live
        self.cancel = cancel_stages

    def run(
        self,
        rows: DataFrame,
        epoch: Epoch,
        latest: CheckpointMetadata | None,
        sources: Sequence[DeliveredSource],
    ) -> JobOutcome:
        """See EpochTasks."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
        from pyspark.errors import PySparkException  # noqa: PLC0415

        job = self._job
        plan = None if latest is None else plan_restore(latest, operators_of(job))
        restored = restored_vertices(job, plan)
        shipped = replace(
            self._shipped,
            restarts=self.restarts,
            live=self._live.begin(self._shipped.live, epoch.checkpoint_id),
        )
        last = self._rdds.last_stage(
            self._delivered(rows, sources),
            lambda stage, following, vertices: EpochStageTasks(
                shipped,
                stage,
                following,
                tuple(map(self._writers.with_writers, vertices)),
                run_id=f"{self._run_id}.{self.restarts}",
                epoch=epoch,
                storage=self._storage,
                restored=restored,
            ),
        )
        try:
            return read_outcome(job, map(from_frame, collected(last)))
        except (Py4JError, PySparkException) as error:
            raise failure_of(error, job, self._shipped.seal, unpublished="epoch")  # noqa: B904 - it has its cause

    def epoch_ended(self, checkpoint_id: int) -> None:
        """See EpochTasks."""
        self._live.begin(None, checkpoint_id + 1)

    def _delivered(self, rows: DataFrame, sources: Sequence[DeliveredSource]) -> RDD[Any]:
        first = self._job.stages[0]
        deliver = Deliver(
            rows.schema.json(),
            tuple((source.first_task, source.parallelism) for source in sources),
            first,
            has_large_types=has_large_types(rows.sparkSession),
            seal=self._shipped.seal,
        )
        delivered = arrow_batches(rows).mapPartitionsWithIndex(deliver)
        delivered = written_raw(delivered).setName("deliveries")
        return shuffled(delivered, len(first.slots), f"to {stage_name(self._job, first)}")
