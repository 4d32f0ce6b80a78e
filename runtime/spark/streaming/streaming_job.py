"""An unbounded job on Spark: one streaming query, whose micro-batches are the job's epochs.

Spark decides when an epoch begins and what it reads, and logs this. After a failure the same input is read again. An
epoch is one Spark job of the compiled stages. The micro-batch ends when the checkpoint of the epoch is complete and the
sinks have committed.

The input of the epochs is one streaming DataFrame of deliveries, (source, subtask, data). Executors turn its rows into
buffers for the tasks of sources (epoch_stages.py). If a micro-batch runs again, Spark's file streams skip files that no
longer exist. So `require_input` looks for the files of unfinished micro-batches before the query starts.
"""

from __future__ import annotations

import json
import signal
import threading
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.epochs.delivered_sources import DeliveredSource, positioned
from opchain.runtime.epochs.input_log import (
    InputRestoredError,
    files_to_read,
    last_offset,
)
from opchain.runtime.epochs.source_positions import POSITIONS
from opchain.runtime.errors import CheckpointError, one_line_name
from opchain.runtime.job.dependencies import NO_DEPENDENCIES, JobDependencies
from opchain.runtime.job.streaming_settings import StreamingSettings, Trigger
from opchain.runtime.job.unbounded_job import UnboundedJob, UnboundedRun
from opchain.runtime.shipping.functions import ship, ship_vertices
from opchain.runtime.spark.bounded_job import python_executable
from opchain.runtime.spark.dataframes import noting_dataframe_errors
from opchain.runtime.spark.job_failure import explaining_a_lost_jvm, failure_of
from opchain.runtime.spark.remote_error import ErrorSeal
from opchain.runtime.spark.session import active_or_new_session
from opchain.runtime.spark.stage_progress import LiveCounts
from opchain.runtime.spark.stage_rdds import SCHEDULER_POOL, StageRdds, job_group
from opchain.runtime.spark.stage_tasks import ShippedJob
from opchain.runtime.spark.streaming.clock_source import (
    NAME,
    TELLS_WHERE,
    ClockSource,
    write_due,
)
from opchain.runtime.spark.streaming.epoch_stages import EpochStages, rows_column
from opchain.runtime.spark.streaming.stream_writers import StreamWriters
from opchain.runtime.spark.worker_path import (
    provide_files,
    provide_imports,
    provide_modules_for_readers,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.epochs.epoch_progress import EpochListener
    from opchain.runtime.job.epochs import Epochs
    from opchain.runtime.program.vertex_program import JobProgram, SlotResources
    from opchain.runtime.shipping.outcome import JobOutcome


def delivered_rows(
    session: SparkSession,
    sources: Sequence[DeliveredSource],
    folder: Path,
    due: Path,
    log: str,
    target_epoch_ms: int | None = None,
) -> DataFrame:
    """The streaming DataFrame. A row of a DataFrame source is one delivery, in the column of its source (`rows_column`).

    Args:
        session: The session.
        sources: The sources of the job.
        folder: The folder in which the reader finds the sources.
        due: The file with the next timer.
        log: Spark's offset log.
        target_epoch_ms: The time that an epoch should take, if it is set.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415 - it may be missing

    described = folder / "sources"
    described.write_bytes(ship(positioned(sources, log, target_epoch_ms)))
    provide_modules_for_readers()
    session.dataSource.register(ClockSource)
    reader = session.readStream.format(NAME)
    start = None if TELLS_WHERE else last_offset(log, POSITIONS)
    if start is not None:
        reader = reader.option("start", json.dumps(start))
    rows = reader.option("sources", str(described)).option("due", str(due)).load()
    for number, item in enumerate(sources):
        if isinstance(item.source, SparkRowSource):
            with noting_dataframe_errors(item.operator):
                fed = item.source.dataframe(session)
            columns = [sql.col("`" + name.replace("`", "``") + "`") for name in fed.columns]
            packed = fed.select(
                sql.lit(number).alias("source"), sql.struct(*columns).alias(rows_column(number))
            )
            rows = rows.unionByName(packed, allowMissingColumns=True)
    return rows


IGNORED = "spark.sql.files.ignoreMissingFiles"
"""Spark's setting that allows missing files."""

_SHOWN = 5


def require_input(session: SparkSession, storage: CheckpointStorage, done: int) -> None:
    """Checks that the files of all unfinished micro-batches exist.

    Args:
        session: The session, with the settings for file systems.
        storage: The job's checkpoints, with Spark's log.
        done: The micro-batch of the last checkpoint; -1 without a checkpoint.

    Raises:
        CheckpointError: Files are missing. The message names them.
    """
    if str(session.conf.get(IGNORED, "false")).lower() == "true":
        return
    for batch, paths in files_to_read(storage, done):
        gone = [path for path in paths if not _exists(session, path)]
        if gone:
            more = f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else ""
            raise CheckpointError(
                f"{storage.url}: micro-batch {batch} was started and must be retried, but "
                f"{len(gone)} of its {len(paths)} files are gone: "
                f"{', '.join(gone[:_SHOWN])}{more}; put them back, or set "
                f"{IGNORED} to continue without their records"
            )


def _exists(session: SparkSession, url: str) -> bool:
    jvm: Any = session._jvm  # noqa: SLF001 - Spark can access all files that it reads
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(url))
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    return bool(path.getFileSystem(configuration).exists(path))


class StreamingJob(UnboundedJob):
    """One unbounded job on a session; see UnboundedJob.

    Attributes:
        live: The counts of running tasks.
    """

    def __init__(
        self,
        session: SparkSession,
        job: JobProgram,
        shipped: Sequence[bytes],
        settings: StreamingSettings,
        dependencies: JobDependencies = NO_DEPENDENCIES,
        resources: Sequence[SlotResources | None] = (),
        plan: Mapping[str, Any] | None = None,
        listeners: Iterable[EpochListener] = (),
    ) -> None:
        self.live = LiveCounts()
        self._query: StreamingQuery | None = None
        super().__init__(job, settings, self.live, plan, listeners)
        self.group = f"opchain {self.run_id}"
        self._session = session
        self._context: SparkContext = session.sparkContext
        self._shipped = shipped
        self._dependencies = dependencies
        self._resources = resources
        self._pool = self._context.getLocalProperty(SCHEDULER_POOL)
        self._seal = ErrorSeal()
        self._is_started = threading.Event()
        self._due_lock = threading.Lock()

    def run(self) -> JobOutcome:
        """See UnboundedJob."""
        resumes = "" if self.checkpoints is None else ": it resumes from its last checkpoint"
        with explaining_a_lost_jvm(self._context, self.job.job_name, resumes):
            return super().run()

    def _open_tasks(
        self, storage: CheckpointStorage, lineage: str, staging: str, stack: ExitStack
    ) -> EpochStages:
        """See UnboundedJob."""
        rdds = StageRdds(self._context, self.job, self._shipped, self._resources)
        stack.callback(rdds.close)
        shipped = ShippedJob(
            self.job.job_name,
            self.job.job_parameters,
            provide_imports(self._context, self._dependencies),
            provide_files(self._session, self._dependencies),
            self._seal,
            lineage=lineage,
            staging=staging,
            live=stack.enter_context(self.live.listening(self._context)),
            has_archives=bool(self._dependencies.archives),
        )
        return EpochStages(
            self.job,
            self.run_id,
            rdds,
            shipped,
            storage=storage,
            writers=StreamWriters(self.job, self._session),
            live=self.live,
            cancel_stages=self._cancel_epoch,
        )

    def _require_input(self, storage: CheckpointStorage, last_batch: int) -> None:
        """See UnboundedJob."""
        require_input(self._session, storage, last_batch)

    def _cancel_epoch(self) -> None:
        """See UnboundedJob."""
        self._context.cancelJobGroup(self.group)

    def _stop_epochs(self) -> None:
        """See UnboundedJob."""
        if self._query is not None:
            self._query.stop()

    def _begin_epoch_soon(self) -> None:
        """See UnboundedJob."""
        with self._due_lock:
            write_due(self._due, 0)

    @property
    def _due(self) -> Path:
        """The file with the next timer, which the reader of sources watches."""
        return self.folder / "due"

    @contextmanager
    def _around_epoch(self) -> Iterator[None]:
        """See UnboundedJob."""
        with (
            job_group(self._context, self.group, self.job, self._pool),
            python_executable(self._context, self._dependencies.python_executable),
        ):
            yield

    def _run_epochs(self, epochs: Epochs) -> bool:
        """Runs the query to its end. Returns whether it must be started again, because its log was repaired."""
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark
        from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - as above

        self._write_due(epochs)
        offsets = f"{epochs.storage.url}/{OFFSETS}"
        target_ms = self.settings.target_epoch_ms or None
        try:
            rows = delivered_rows(
                self._session, epochs.sources, self.folder, self._due, offsets, target_ms
            )
        except Py4JJavaError as error:
            raise failure_of(error, self.job, self._seal, unpublished="epoch") from error
        writer = (
            rows.writeStream.queryName(f"{one_line_name(self.job.job_name)} {self.run_id[:8]}")
            .option("checkpointLocation", offsets)
            .foreachBatch(partial(self._run_micro_batch, epochs))
        )
        self._query = query = self._triggered(writer).start()
        self._is_started.set()
        if self.cancelled.is_set() or self.control.is_stopped:
            query.stop()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if self.cancelled.is_set():
                raise self.cancelled_error("within an epoch") from error
            if self.control.is_stopped:
                return False
            if isinstance(self._failure, InputRestoredError):
                self._failure = None
                return True
            if self._failure is not None:
                # Spark's own error repeats the failure three times, with Spark's plan.
                raise self._failure from self._failure.__cause__
            raise failure_of(error, self.job, self._seal, unpublished="epoch") from error
        if self.cancelled.is_set():
            raise self.cancelled_error("between two epochs")
        return False

    def _triggered(self, writer: Any) -> Any:
        trigger = self.settings.trigger
        if trigger is Trigger.AVAILABLE_NOW:
            return writer.trigger(availableNow=True)
        if trigger is Trigger.ONCE:
            return writer.trigger(once=True)
        if self.settings.checkpoint_interval_ms:
            return writer.trigger(
                processingTime=f"{self.settings.checkpoint_interval_ms} milliseconds"
            )
        return writer

    def _run_micro_batch(self, epochs: Epochs, rows: DataFrame, batch: int) -> None:
        """Runs an epoch; called by `foreachBatch`."""
        with self._noting_failure(epochs, batch):
            self._run_epoch(epochs, rows, batch)
            self._write_due(epochs)
        if epochs.are_over():
            # On another thread, since stopping waits for the end of this micro-batch.
            threading.Thread(target=self._stop_query, name="stop", daemon=True).start()
            return
        # New input arrives during the pause. Jobs with other triggers need no pause.
        if self.settings.trigger is Trigger.PROCESSING_TIME:
            self.cancelled.wait(self.settings.checkpoint_min_pause_ms / 1000)

    def _stop_query(self) -> None:
        self._is_started.wait()
        assert self._query is not None
        self._query.stop()

    def _write_due(self, epochs: Epochs) -> None:
        """Writes when the next epoch must begin, even without input."""
        with self._due_lock:
            write_due(self._due, self._next_due_ms(epochs), epochs.waiting_sources())


def _restore_interrupts_of_python() -> None:
    """Replaces pyspark's handler of SIGINT, which would cancel all Spark jobs and so abort the epoch."""
    if threading.current_thread() is threading.main_thread():
        module = getattr(signal.getsignal(signal.SIGINT), "__module__", None) or ""
        if module.startswith("pyspark."):
            signal.signal(signal.SIGINT, signal.default_int_handler)


def streaming_run(
    job: JobProgram,
    settings: StreamingSettings,
    dependencies: JobDependencies = NO_DEPENDENCIES,
    resources: Sequence[SlotResources | None] = (),
    listeners: Iterable[EpochListener] = (),
    plan: Mapping[str, Any] | None = None,
) -> UnboundedRun:
    """The run of an unbounded job on the active session, or a new one.

    Args:
        job: The job.
        settings: The settings of the run.
        dependencies: The files that it needs.
        resources: The resources of a slot of each vertex, or None; empty if no vertex has any.
        listeners: Notified after each epoch.
        plan: The job's plan, which is stored in checkpoints.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
        UnsupportedFeatureError: A source can't be read epoch by epoch.
        SparkUnavailableError: Spark is missing or does not start.
        OSError: The progress log can't be written.
    """
    shipped = ship_vertices(job)
    session = active_or_new_session()
    _restore_interrupts_of_python()
    streaming = StreamingJob(
        session, job, shipped, settings, dependencies, resources, plan, listeners
    )
    return UnboundedRun(streaming)
