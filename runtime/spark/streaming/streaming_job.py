"""An unbounded job: one streaming query, whose micro-batches are the job's epochs.

Spark is the clock and the log of offsets: it says when an epoch begins and what it reads, and reads the same
again after a failure. Everything else is done here. An epoch is one Spark job of the compiled
stages; when all its tasks have acknowledged, its checkpoint is completed in one atomic step, and then the
sinks commit. Only when that is done does Spark hear that the micro-batch is over. So a micro-batch that Spark
runs again, and that has its checkpoint, only commits again.
"""

from __future__ import annotations

import logging
import shlex
import sys
import tempfile
import threading
import uuid
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.checkpoint_key import read_key
from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator
from opchain.runtime.checkpoint.epoch_files import checkpoint_name
from opchain.runtime.checkpoint.job_requests import FOLDER as REQUESTS
from opchain.runtime.checkpoint.retention import lineage_of
from opchain.runtime.checkpoint.run_lease import FOLDER as RUNS
from opchain.runtime.checkpoint.savepoint import (
    OFFSETS,
    Located,
    adopt,
    empty_target,
    write_savepoint,
)
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.epochs.epoch_history import EpochHistory
from opchain.runtime.epochs.epoch_progress import ProgressLog
from opchain.runtime.errors import TaskFailedError, add_note, one_line_name
from opchain.runtime.job.collected_records import CollectedRecords
from opchain.runtime.job.dependencies import NO_DEPENDENCIES
from opchain.runtime.job.restarts import Restarts
from opchain.runtime.redaction import is_secret
from opchain.runtime.shipping.outcome import JobOutcome
from opchain.runtime.spark.bounded_job import python_executable
from opchain.runtime.spark.job_failure import failure_of, naming_a_lost_jvm
from opchain.runtime.spark.job_files import provide_files, provide_imports
from opchain.runtime.spark.remote_error import ErrorSeal
from opchain.runtime.spark.stage_line import SCHEDULER_POOL, StageLine, job_group, stage_name
from opchain.runtime.spark.stage_progress import LiveCounts
from opchain.runtime.spark.stage_tasks import ShippedJob
from opchain.runtime.spark.streaming.clock_source import write_due
from opchain.runtime.spark.streaming.delivered_sources import (
    can_be_replayed,
    delivered_rows,
    unbounded_sources,
)
from opchain.runtime.spark.streaming.epochs import Epochs
from opchain.runtime.spark.streaming.input_log import (
    InputRestoredError,
    SavedInput,
    go_back,
    require_input,
    require_log,
)
from opchain.runtime.spark.streaming.job_control import JobControl
from opchain.runtime.spark.streaming.settings import StreamingSettings, Trigger
from opchain.runtime.spark.streaming.stream_writers import StreamWriters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.epochs.epoch_history import EpochListener
    from opchain.runtime.job.dependencies import JobDependencies
    from opchain.runtime.program.vertex_program import JobProgram, SlotResources

_LOG = logging.getLogger("opchain.job")

PATIENCE_S = 20.0
"""How long a job that is cancelled may continue with its epoch."""

_LOOK_EVERY_S = 0.2
"""How often an epoch that waits for its turn checks whether the job is cancelled."""

STAGING = "outbox"
"""The folder of a job's checkpoints with what sinks have written and will send when it is committed."""

NO_LIMIT = -1.0
"""For as long as it takes."""


class _Ended:
    """Deletes the checkpoints of a job that has ended, where its retention says so.

    What runs are known by stays, and so do answers to requests, which other processes wait for.
    """

    def __init__(self, job: StreamingJob, storage: CheckpointStorage) -> None:
        self.owns_checkpoints = False
        self._job = job
        self._storage = storage

    def __call__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Called with the failure, if there was one, when the lease is closed."""
        if self.owns_checkpoints and not self._job.keeps_checkpoints(has_failed=kind is not None):
            for name in self._storage.children():
                if name not in (RUNS, REQUESTS):
                    # Spark misses its log where any file of it is left, a hidden or unfinished one too.
                    self._storage.delete_folder(name)


class StreamingJob:
    """One unbounded job on a session. `run` may be called once, `cancel` at any time, from any thread.

    Attributes:
        records: What its collecting sinks give.
        history: Its epochs.
        live: What the tasks of the epoch that runs have counted so far.
        begins_with: What the run continues; None until that is known.
        restarts: How often it has started again.
        control: Takes its savepoints, and stops it.

    Raises:
        OSError: The progress log can't be written.
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
        self.job = job
        self.run_id = uuid.uuid4().hex
        self.group = f"opchain {self.run_id}"
        self._session = session
        self._context: SparkContext = session.sparkContext
        self._shipped = shipped
        self._settings = settings
        self._dependencies = dependencies
        self._resources = resources
        self._plan = plan
        self._pool = self._context.getLocalProperty(SCHEDULER_POOL)
        self._sources = unbounded_sources(job)
        self._is_bounded = not self._sources
        self._cancelled = threading.Event()
        self._between_epochs = threading.Lock()
        self._seal = ErrorSeal()
        self._query: StreamingQuery | None = None
        self._is_started = threading.Event()
        self._failure: BaseException | None = None
        self.records = CollectedRecords()
        self._due: Path | None = None
        self._due_lock = threading.Lock()
        self.control = JobControl(
            self.run_id,
            self._between_epochs,
            stop_query=self._stop_started_query,
            cancel=self.cancel,
            wake=self._begin_epoch_soon,
            default_directory=settings.savepoint_directory,
        )
        self.restarts = Restarts(settings.restarts, job.job_name, start="from its last checkpoint")
        self.history = EpochHistory(job, listeners)
        self.live = LiveCounts()
        self.begins_with: str | None = None
        if settings.progress_log is not None:
            self.history.listen(ProgressLog(settings.progress_log))

    def run(self) -> JobOutcome:
        """Runs epochs until the query ends: forever, until it is cancelled, or until all is read.

        Raises:
            Exception: What a user's function raised, with notes that say where.
            CheckpointError: The checkpoints are somebody else's, damaged, or do not fit the program.
            StreamError: The job failed for another reason.
        """
        # From here on: whatever fails, readers of collected records hear that the job has ended.
        resumes = "" if self.checkpoints is None else ": it resumes from its last checkpoint"
        with (
            naming_a_lost_jvm(self._context, self.job.job_name, resumes),
            ExitStack() as stack,
        ):
            stack.callback(self.records.end)
            folder = tempfile.TemporaryDirectory(prefix="opchain-", ignore_cleanup_errors=True)
            return self._run_in(Path(stack.enter_context(folder)), stack)

    def _run_in(self, folder: Path, stack: ExitStack) -> JobOutcome:
        """Runs epochs with a folder for what Spark's reader of sources needs; the stack closes what is opened."""
        url = self._settings.checkpoints or str(folder / "checkpoints")
        key_file = self._settings.key_file
        storage = checkpoint_storage(url, None if key_file is None else read_key(key_file))
        at_end = self._settings.savepoint_at_end
        if at_end is not None:
            empty_target(checkpoint_storage(at_end, storage.key))  # told before the job has run
        ended = _Ended(self, storage)
        stack.push(ended)
        coordinator = CheckpointCoordinator.open(
            storage,
            self.job.job_name,
            self.run_id,
            # An epoch is run again from the checkpoint before its own.
            retained=max(self._settings.retained, 2 if self._settings.records_epochs else 1),
            tolerable_failures=self._settings.tolerable_failures,
        )
        stack.callback(coordinator.close)
        line = StageLine(self._context, self.job, self._shipped, self._resources)
        stack.callback(line.close)
        shipped = ShippedJob(
            self.job.job_name,
            self.job.job_parameters,
            provide_imports(self._context, self._dependencies),
            provide_files(self._session, self._dependencies),
            self._seal,
            lineage=lineage_of(storage),
            staging=f"{storage.url}/{STAGING}",
            live=stack.enter_context(self.live.listening(self._context)),
            has_archives=bool(self._dependencies.archives),
        )
        restore_from = self._settings.restore_from
        if restore_from is not None:
            go_back(storage, coordinator, restore_from)
            if coordinator.latest() is None:
                adopt(storage, restore_from, coordinator.lease)
        epochs = Epochs(
            self.job,
            self.run_id,
            line,
            shipped,
            self._sources,
            storage=storage,
            coordinator=coordinator,
            records=self.records,
            writers=StreamWriters(self.job, self._session),
            history=self.history,
            live=self.live,
            plan=self._plan,
            allow_non_restored_state=self._settings.allow_non_restored_state,
            records_epochs=self._settings.records_epochs,
            accepts_duplicates=self._settings.accepts_duplicates,
            timeout_ms=self._settings.timeout_ms,
            keeps_event_time=at_end is not None,
            cancel_stages=partial(self._context.cancelJobGroup, self.group),
        )
        self.begins_with = restored_text(epochs.latest, self.job)
        ended.owns_checkpoints = True
        self._due = folder / "due"
        self.control.begin(storage, epochs.latest)
        stack.callback(self.control.end)
        require_log(storage, epochs.last_batch)
        require_input(self._session, storage, epochs.last_batch)
        kept = SavedInput(storage)

        def attempt(number: int) -> None:
            self._failure = None
            epochs.restarts = number
            while not (self.control.is_stopped or epochs.are_over()) and self._run_query(
                epochs, kept, folder, f"{storage.url}/{OFFSETS}"
            ):
                pass

        self.restarts.run(attempt, self._cancelled)
        if at_end is not None and epochs.latest is not None:
            write_savepoint(Located(storage, epochs.latest), at_end, holds_state_alone=True)
            _LOG.info("state at the end of job '%s': %s", self.job.job_name, at_end)
        outcome = epochs.outcome or JobOutcome()
        outcome.metrics = self.history.totals()
        return outcome

    @property
    def checkpoints(self) -> str | None:
        """Where they stay when the job has ended; None if they don't."""
        return self._settings.checkpoints

    def keeps_checkpoints(self, *, has_failed: bool) -> bool:
        """Whether they stay when the job ends now."""
        is_cancelled = self._cancelled.is_set()
        return self._settings.retention.keeps(is_cancelled=is_cancelled, has_failed=has_failed)

    def cancel(self, patience_s: float = PATIENCE_S) -> None:
        """Ends the query between two epochs; one that takes longer is aborted, and run again some day.

        Args:
            patience_s: How long the epoch that runs now may take; less than 0 forever.
        """
        self._cancelled.set()
        self.records.end()
        is_between = self._between_epochs.acquire(timeout=max(patience_s, NO_LIMIT))
        try:
            if not is_between:
                self._context.cancelJobGroup(self.group)
            if self._query is not None:
                self._query.stop()
        finally:
            if is_between:
                self._between_epochs.release()

    def _run_query(self, epochs: Epochs, kept: SavedInput, folder: Path, offsets: str) -> bool:
        """Runs the query to its end; whether it is to be started again, as its log was mended."""
        from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - comes with pyspark

        self._write_due(epochs)
        assert self._due is not None
        target_ms = self._settings.target_epoch_ms
        rows = delivered_rows(self._session, epochs.sources, folder, self._due, offsets, target_ms)
        writer = (
            rows.writeStream.queryName(f"{one_line_name(self.job.job_name)} {self.run_id[:8]}")
            .option("checkpointLocation", offsets)
            .foreachBatch(partial(self._run_epoch, epochs, kept))
        )
        self._query = query = self._triggered(writer).start()
        self._is_started.set()
        if self._cancelled.is_set() or self.control.is_stopped:
            query.stop()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if self._cancelled.is_set():
                raise TaskFailedError("the job was cancelled within an epoch") from error
            if self.control.is_stopped:
                return False
            if isinstance(self._failure, InputRestoredError):
                self._failure = None
                return True
            if self._failure is not None:
                # What Spark makes of it repeats the failure three times, with Spark's plan.
                raise self._failure from self._failure.__cause__
            raise failure_of(error, self.job, self._seal) from error
        if self._cancelled.is_set():
            raise TaskFailedError("the job was cancelled between two epochs")
        return False

    def _triggered(self, writer: Any) -> Any:
        trigger = self._settings.trigger
        if trigger is Trigger.AVAILABLE_NOW:
            return writer.trigger(availableNow=True)
        if trigger is Trigger.ONCE:
            return writer.trigger(once=True)
        if self._settings.interval_ms:
            return writer.trigger(processingTime=f"{self._settings.interval_ms} milliseconds")
        return writer

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Holds `_between_epochs` for an epoch.

        `cancel` holds it while it waits for the query, and the query waits for this thread. So a cancellation ends
        the wait. A stop releases it first, and `require_going_on` refuses the epoch.
        """
        while not self._between_epochs.acquire(timeout=_LOOK_EVERY_S):
            if self._cancelled.is_set():
                raise TaskFailedError("the job was cancelled between two epochs")
        try:
            yield
        finally:
            self._between_epochs.release()

    def _run_epoch(self, epochs: Epochs, kept: SavedInput, rows: DataFrame, batch: int) -> None:
        """What `foreachBatch` calls."""
        try:
            with (
                self._turn(),
                job_group(self._context, self.group, self._description(), self._pool),
                python_executable(self._context, self._dependencies.python_executable),
            ):
                self.control.require_going_on()
                kept.require(batch)
                drains = self.control.drains
                ends = self._is_bounded and self._settings.savepoint_at_end is None
                has_run = epochs.run(rows, batch, drains=drains or ends)
                kept.forget(batch)
                self.control.checkpointed(epochs.latest)
                if drains and has_run:
                    self.control.drained()
            self._write_due(epochs)
        except BaseException as error:
            self._failure = error
            if isinstance(error, Exception) and not isinstance(error, InputRestoredError):
                add_note(error, self._where_it_failed(epochs, batch))
                command = self._replay_command(epochs, batch)
                if command is not None:
                    add_note(error, f"to run this epoch here, without Spark: {command}")
            raise
        if epochs.are_over():
            # On a thread of its own, since stopping waits for this very micro-batch.
            threading.Thread(target=self._stop_query, name="stop", daemon=True).start()
            return
        # Input gathers meanwhile. A job that ends by itself has no reason to wait.
        if self._settings.trigger is Trigger.PROCESSING_TIME:
            self._cancelled.wait(self._settings.min_pause_ms / 1000)

    def _stop_query(self) -> None:
        self._is_started.wait()
        assert self._query is not None
        self._query.stop()

    def _write_due(self, epochs: Epochs) -> None:
        """Says when the next epoch begins, though there may be no input."""
        assert self._due is not None
        with self._due_lock:
            begins_at_once = self.control.drains or self._is_bounded
            due_ms = 0 if begins_at_once else epochs.next_timer_ms
            write_due(self._due, due_ms, epochs.waiting_sources())

    def _begin_epoch_soon(self) -> None:
        assert self._due is not None
        with self._due_lock:
            write_due(self._due, 0)

    def _stop_started_query(self) -> None:
        if self._query is not None:
            self._query.stop()

    def _where_it_failed(self, epochs: Epochs, batch: int) -> str:
        """The epoch of a failure, and from where the job resumes."""
        number, checkpoint = epochs.place_of(batch)
        if self.checkpoints is None:
            resumes = "begins again, since its checkpoints were temporary: set execution.checkpointing.dir"
        elif batch <= epochs.last_batch:
            resumes = f"commits this epoch, whose checkpoint is complete: {checkpoint}"
        elif checkpoint is None:
            resumes = "begins with this epoch, of which nothing was published"
        else:
            resumes = f"resumes from {checkpoint}; nothing of this epoch was published"
        return f"in epoch {number}: started again, the job {resumes}"

    def _replay_command(self, epochs: Epochs, batch: int) -> str | None:
        """The command that runs a failed epoch again; None where it could not."""
        number, checkpoint = epochs.place_of(batch)
        is_next = batch == epochs.last_batch + 1
        if self.checkpoints is None or checkpoint is None or not is_next:
            return None
        program = sys.argv[0] if sys.argv and sys.argv[0].endswith(".py") else None
        if program is None or not can_be_replayed(self._sources):
            return None
        words = ["opchain", "replay", "--epoch", str(number), str(self.checkpoints), program]
        arguments = sys.argv[1:]
        named = any(is_secret(word) for word in arguments)
        return shlex.join([*words, *arguments]) if not named else f"{shlex.join(words)} ARGUMENTS"

    def _description(self) -> str:
        return f"{self.job.job_name}: {'; '.join(stage_name(self.job, stage) for stage in self.job.stages)}"


def restored_text(latest: CheckpointMetadata | None, job: JobProgram) -> str:
    """What a run continues, and which parallelisms are others now."""
    if latest is None:
        return "no checkpoint, it starts afresh"
    before = Counter(task.vertex_id for task in latest.tasks)
    changed = {
        f"{before[vertex.vertex_id]} -> {vertex.parallelism}": None
        for vertex in job.vertices
        if before.get(vertex.vertex_id, vertex.parallelism) != vertex.parallelism
    }
    parallelism = f", parallelism {', '.join(changed)}" if changed else ""
    return f"restored {checkpoint_name(latest.epoch)}{parallelism}"
