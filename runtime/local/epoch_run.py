"""Runs an unbounded job with checkpoints in this process: one epoch after another, in one thread.

Epochs, checkpoints, commits, savepoints and files are the same as on Spark. So a job can start here from a checkpoint
that was written on Spark, and the other way round. Only the loop is local: it asks the sources for their positions,
writes an offset log in Spark's format, and runs the tasks of each epoch.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.epochs.delivered_sources import DeliveredSource, deliveries_of, positions_of
from opchain.runtime.epochs.input_log import (
    InputRestoredError,
    is_batch_done,
    log_offset,
    mark_batch_done,
    required_offset,
)
from opchain.runtime.epochs.local_epochs import LocalEpochs
from opchain.runtime.epochs.source_positions import POSITIONS, Offset, SourcePositions
from opchain.runtime.errors import CorruptCheckpointError, TaskFailedError
from opchain.runtime.job.dependencies import NO_DEPENDENCIES, JobDependencies, local_files
from opchain.runtime.job.progress import JobProgress
from opchain.runtime.job.streaming_settings import StreamingSettings, Trigger
from opchain.runtime.job.unbounded_job import UnboundedJob, UnboundedRun
from opchain.runtime.local.job import warn_of_many_tasks
from opchain.runtime.local.live_run import StopSwitch
from opchain.runtime.local.task_thread import JobStoppedError, TaskThread
from opchain.runtime.mailbox.timer_service import wall_clock_ms
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import ExitStack

    from opchain.runtime.checkpoint.epoch import Epoch
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.epochs.epoch_progress import EpochListener
    from opchain.runtime.epochs.epoch_task import EpochTask
    from opchain.runtime.job.epochs import Epochs
    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.shipping.outcome import JobOutcome

_LOG = logging.getLogger("opchain.local")

_LOOK_EVERY_S = 0.01
"""How often the sources are asked for new input, in seconds. Spark: `spark.sql.streaming.pollingDelay`."""


class EpochCounts(JobProgress):
    """The counts of the tasks of the current epoch."""

    def __init__(self) -> None:
        self.tasks: dict[int, Callable[[], TaskMetrics]] = {}

    def running_tasks(self) -> dict[int, TaskMetrics]:
        """See JobProgress."""
        return {task: measure() for task, measure in self.tasks.copy().items()}


class LocalEpochTasks:
    """The `EpochTasks` of a job in this process.

    Args:
        job: The job.
        storage: The storage to which tasks write their state.
        environment: The environment of the tasks.
        counts: Receives the counts of the tasks of the current epoch.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
    """

    def __init__(
        self,
        job: JobProgram,
        storage: CheckpointStorage,
        environment: TaskEnvironment,
        counts: EpochCounts | None = None,
    ) -> None:
        self.restarts = 0
        self._job = job
        self._storage = storage
        self._environment = environment
        self._counts = counts or EpochCounts()
        self._switch = StopSwitch()
        self._abandoned = 0
        self._begin_attempt()

    def run(
        self,
        rows: Iterable[tuple[int, int, bytes]],
        epoch: Epoch,
        latest: CheckpointMetadata | None,
        sources: Sequence[DeliveredSource],
    ) -> JobOutcome:
        """See EpochTasks."""
        if self.restarts != self._attempt or self._thread.is_abandoned:
            self._abandoned += self._thread.is_abandoned
            self.close()
            self._begin_attempt()
        self._switch = StopSwitch()
        deliveries = deliveries_of(sources, rows)
        return self._thread.run(lambda: self._epochs.run(epoch, deliveries, latest))

    def cancel(self) -> None:
        """See EpochTasks. A function that never returns is abandoned with its thread; see TaskThread."""
        _LOG.warning("the current epoch is cancelled")
        self._switch.stop()
        self._thread.stop()

    def epoch_ended(self, checkpoint_id: int) -> None:  # noqa: ARG002 - the contract
        """See EpochTasks."""
        self._counts.tasks.clear()

    def close(self) -> None:
        """Closes the tasks. Errors are logged."""
        self._thread.close()

    def _begin_attempt(self) -> None:
        self._attempt = self.restarts
        environment = replace(self._environment, attempt=self.restarts)
        if self._abandoned:  # abandoned tasks may still write files
            attempt_id = f"{environment.attempt_id}-{self._abandoned}"
            environment = replace(environment, attempt_id=attempt_id)
        self._epochs = LocalEpochs(
            self._job, self._storage, environment=environment, prepare=self._watch
        )
        # Always the same thread, because some objects of users, such as connections of sqlite3, belong to a thread.
        self._thread = TaskThread(self._epochs.close_quietly)

    def _watch(self, task: EpochTask) -> None:
        self._switch.watch(task)
        self._counts.tasks[task.info.task] = task.counts_now


class LocalEpochJob(UnboundedJob):
    """One unbounded job in this process; see UnboundedJob.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
    """

    def __init__(
        self,
        job: JobProgram,
        settings: StreamingSettings,
        dependencies: JobDependencies = NO_DEPENDENCIES,
        plan: Mapping[str, Any] | None = None,
        listeners: Iterable[EpochListener] = (),
    ) -> None:
        ship_vertices(job)  # fails before the job starts if a function cannot be pickled
        self._counts = EpochCounts()
        super().__init__(job, settings, self._counts, plan, listeners)
        self._dependencies = dependencies
        self._tasks: LocalEpochTasks | None = None
        self._woken = threading.Event()
        self._next_begin_ms = 0

    def _open_tasks(
        self, storage: CheckpointStorage, lineage: str, staging: str, stack: ExitStack
    ) -> LocalEpochTasks:
        """See UnboundedJob."""
        environment = TaskEnvironment(
            files=stack.enter_context(local_files(self._dependencies)),
            prints_on_driver=True,
            lineage=lineage,
            staging=staging,
        )
        self._tasks = LocalEpochTasks(self.job, storage, environment, self._counts)
        stack.callback(self._tasks.close)
        return self._tasks

    def _cancel_epoch(self) -> None:
        """See UnboundedJob."""
        if self._tasks is not None:
            self._tasks.cancel()

    def _stop_epochs(self) -> None:
        """See UnboundedJob."""
        self._woken.set()

    def _begin_epoch_soon(self) -> None:
        """See UnboundedJob."""
        self._woken.set()

    def _run_epochs(self, epochs: Epochs) -> bool:
        """See UnboundedJob."""
        log = f"{epochs.storage.url}/{OFFSETS}"
        positions = positions_of(epochs.sources, log, self.settings.target_epoch_ms or None)
        reads_all = self.settings.trigger is Trigger.AVAILABLE_NOW
        until_ms = wall_clock_ms() if reads_all else None
        done = epochs.last_batch
        if done >= 0 and not is_batch_done(log, done):
            self._run_one(epochs, log, done, ())  # a commit may have failed
        start = _offset_after(epochs, log, done) or positions.initial(wall_clock_ms())
        restored = None
        while not (self._is_over() or epochs.are_over()):
            batch = epochs.last_batch + 1
            # A started epoch reads the same input again. The first epoch has published nothing, so it may read other
            # input.
            is_saved = batch > 0 or batch == restored
            end = required_offset(log, batch, POSITIONS) if is_saved else None
            if end is None:
                end = self._next_offset(epochs, positions, start, until_ms)
                if end is None:
                    break
                try:
                    log_offset(log, batch, end, wall_clock_ms())
                except FileExistsError:  # a driver that this one has replaced was first
                    continue
            try:
                self._run_one(epochs, log, batch, list(positions.splits(start, end)), end)
            except InputRestoredError:
                restored = batch
                continue
            start = end
            if self.settings.trigger is Trigger.ONCE:
                break
            if self.settings.trigger is Trigger.PROCESSING_TIME:
                self.cancelled.wait(self.settings.checkpoint_min_pause_ms / 1000)
        if self.cancelled.is_set():
            raise self.cancelled_error("between two epochs")
        return False

    def _is_over(self) -> bool:
        return self.cancelled.is_set() or self.control.is_stopped

    def _run_one(
        self,
        epochs: Epochs,
        log: str,
        batch: int,
        rows: Any,
        end: Offset | None = None,
    ) -> None:
        """Runs the epoch of a micro-batch, and writes to the commit log that the epoch is over."""
        try:
            with self._noting_failure(epochs, batch):
                self._run_epoch(epochs, rows, batch, end)
        except JobStoppedError as error:
            if not self.cancelled.is_set():
                raise
            raise self.cancelled_error("within an epoch") from error
        except TaskFailedError:
            if not self.control.is_stopped:
                raise
            return  # stopped while this epoch waited for its turn: the next start of the job runs it
        mark_batch_done(log, batch)

    def _next_offset(
        self, epochs: Epochs, positions: SourcePositions, start: Offset, until_ms: int | None
    ) -> Offset | None:
        """Waits until an epoch should begin. Returns the end of its input, or None if no epoch should follow.

        The first epoch of a job begins immediately: it opens the functions and reads bounded sources. An interval ends
        at a multiple of itself, as in Spark. A request to drain the job does not wait for it.
        """
        waits = self.settings.trigger is Trigger.PROCESSING_TIME
        interval_ms = self.settings.checkpoint_interval_ms if waits else 0
        while not self._is_over():
            if interval_ms:
                left_ms = self._next_begin_ms - wall_clock_ms()
                self._wait(min(left_ms, interval_ms) / 1000)  # the clock may have been set back
            now_ms = wall_clock_ms()
            if interval_ms:
                self._next_begin_ms = (now_ms // interval_ms + 1) * interval_ms
            end = positions.latest(
                start,
                until_ms or now_ms,
                self._next_due_ms(epochs),
                epochs.waiting_sources(),
                reads_all=until_ms is not None,
            )
            if epochs.last_batch < 0 or end != start:
                return end
            if not waits:
                return None
            if not interval_ms:
                self._wait(_LOOK_EVERY_S)
        return None

    def _wait(self, longest_s: float) -> None:
        """Waits for a request, at most for this time."""
        if longest_s > 0 and not self.control.drains:
            self._woken.wait(longest_s)
        self._woken.clear()


def _offset_after(epochs: Epochs, log: str, done: int) -> Offset | None:
    """The offset of the last checkpoint's micro-batch; None before the first.

    A driver that was replaced may have changed the first entry of the log. So the checkpoint has the offset, too.
    """
    if done != 0 or epochs.read_to is None:
        return required_offset(log, done, POSITIONS) if done >= 0 else None
    logged = None
    with suppress(CorruptCheckpointError):
        logged = required_offset(log, done, POSITIONS)
    if logged != epochs.read_to:
        log_offset(log, done, epochs.read_to, wall_clock_ms())
    return epochs.read_to


def local_epoch_run(
    job: JobProgram,
    settings: StreamingSettings,
    dependencies: JobDependencies = NO_DEPENDENCIES,
    listeners: Iterable[EpochListener] = (),
    plan: Mapping[str, Any] | None = None,
) -> UnboundedRun:
    """The run of an unbounded job in this process, with checkpoints.

    Args:
        job: The job.
        settings: The settings of the run.
        dependencies: The files that it needs.
        listeners: Called after each epoch.
        plan: The job's plan, which is stored in checkpoints.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
        UnsupportedFeatureError: A source can't be read epoch by epoch.
        OSError: The progress log can't be written.
    """
    warn_of_many_tasks(job)
    return UnboundedRun(LocalEpochJob(job, settings, dependencies, plan, listeners))
