"""The epochs of an unbounded job, each from its micro-batch to its commits."""

from __future__ import annotations

import logging
import pickle
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.checkpoint.coordinator import (
    CheckpointCoordinator,
    DeclineReason,
    PendingCheckpoint,
)
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.checkpoint.epoch_files import checkpoint_name
from opchain.runtime.checkpoint.fall_back import (
    dropped_checkpoints,
    forget_replaced,
    is_dropped,
    replaced_checkpoint,
    suggest_earlier_checkpoint,
)
from opchain.runtime.checkpoint.fault_points import reach
from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    Committable,
    EpochInput,
    TaskMetadata,
)
from opchain.runtime.checkpoint.restore_plan import match_state
from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.checkpoint.source_numbers import bounded_sources
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.epochs.delivered_sources import in_checkpoint_order, stored_sources
from opchain.runtime.epochs.epoch_progress import (
    CHECKPOINT,
    COMMIT,
    TASKS,
    WAITING,
    EpochHistory,
    PhaseClock,
    epoch_progress,
)
from opchain.runtime.epochs.event_time import epoch_time_ms, sources_ahead
from opchain.runtime.epochs.input_log import SavedInput, offset_of
from opchain.runtime.epochs.live_tasks import operators_with_state
from opchain.runtime.epochs.source_positions import POSITIONS
from opchain.runtime.errors import (
    ALLOW_NON_RESTORED_STATE,
    CheckpointError,
    CheckpointFailedError,
    CorruptCheckpointError,
)
from opchain.runtime.job.orphans import abort_epoch, discard_orphans, require_no_later_commits
from opchain.runtime.shipping.outcome import (
    JobOutcome,
    commit,
    print_lines,
    with_idle_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.epochs.delivered_sources import DeliveredSource
    from opchain.runtime.job.run import CollectedRecords
    from opchain.runtime.job.streaming_settings import StreamingSettings
    from opchain.runtime.program.vertex_program import JobProgram


class EpochTasks(Protocol):
    """Runs the tasks of epochs, on one engine.

    Attributes:
        restarts: How often the job has started again. A restart rebuilds its tasks.
    """

    restarts: int

    def run(
        self,
        rows: Any,
        epoch: Epoch,
        latest: CheckpointMetadata | None,
        sources: Sequence[DeliveredSource],
    ) -> JobOutcome:
        """Runs all tasks of an epoch, without commits, and returns their reports.

        Args:
            rows: The input of the epoch: (number of the source, subtask, data), in the engine's form.
            epoch: The epoch.
            latest: The checkpoint before it; None for the first epoch.
            sources: The job's unbounded sources by number.

        Raises:
            Exception: The exception of a user's function, with notes that say where it was raised.
        """

    def cancel(self) -> None:
        """Ends the current epoch with an error. Any thread may call this."""

    def epoch_ended(self, checkpoint_id: int) -> None:
        """Called when an epoch has committed."""


class _Expiry:
    """Ends an epoch that takes too long; 0: no limit. Flink: the canceller of `PendingCheckpoint`."""

    def __init__(self, timeout_ms: int, cancel: Callable[[], None]) -> None:
        self.has_expired = False
        self._lock = Lock()
        self._has_ended = False
        self._cancel = cancel
        self._timer = Timer(timeout_ms / 1000, self._expire) if timeout_ms else None

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._has_ended = True

    def _expire(self) -> None:
        with self._lock:  # a late timer must not cancel the next epoch
            if not self._has_ended:
                self.has_expired = True
                self._cancel()


_EPOCHS_BETWEEN_SWEEPS = 100

_LOG = logging.getLogger("opchain.epochs")


class Epochs:
    """The epochs of one run. Only one thread may use it at a time.

    Args:
        job: The job.
        settings: Its settings.
        run_id: The unique id of this run.
        tasks: Runs its tasks.
        sources: Its unbounded sources.
        storage: The storage of state.
        coordinator: Completes checkpoints.
        records: Receives the records of collecting sinks.
        history: Receives the progress of each epoch that has ended.
        plan: The job's plan, for the metadata.
        lineage: The id with which sinks mark staged output.
        staging: The folder of output that waits for its commit; None to keep it beside the target.

    Raises:
        CheckpointError: The job can't resume from the last checkpoint.

    Attributes:
        latest: The last checkpoint.
        outcome: The outcome of the last epoch; None before the first has ended.
        sources: Its unbounded sources, in the order of the log of offsets.
        tasks: Runs its tasks.
        storage: The storage of state.
        saved_input: The input of micro-batches that are repeated after an earlier checkpoint.
    """

    def __init__(
        self,
        job: JobProgram,
        settings: StreamingSettings,
        run_id: str,
        tasks: EpochTasks,
        sources: Sequence[DeliveredSource],
        *,
        storage: CheckpointStorage,
        coordinator: CheckpointCoordinator,
        records: CollectedRecords,
        history: EpochHistory,
        lineage: str,
        staging: str | None = None,
        plan: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = settings
        self._declined: list[str] = []
        self._job = job
        self._run_id = run_id
        self.tasks = tasks
        self._lineage = lineage
        self._staging = staging
        self.storage = storage
        self._coordinator = coordinator
        self._records = records
        self._history = history
        self._phases = PhaseClock()
        self._plan = plan
        self.outcome: JobOutcome | None = None
        self._unfinished: Callable[[], bool] | None = None
        self.latest = coordinator.latest()
        if self.latest is not None:
            match_state(
                self.latest, job, allow_non_restored_state=settings.allow_non_restored_state
            )
        self.sources = in_checkpoint_order(sources, self.latest)
        last = 0 if self.latest is None else self.latest.checkpoint_id
        require_no_later_commits(
            job,
            self._lineage,
            storage.url,
            last,
            partial(is_dropped, storage),
            accepts_duplicates=settings.accept_duplicates,
        )
        if self.latest is not None:
            self._commit_again(self.latest)
        for dropped in dropped_checkpoints(storage, last):
            self._commit_again(dropped)
        self._discard_orphans()  # of runs that were killed
        self.saved_input = SavedInput(storage)

    @property
    def last_batch(self) -> int:
        """The micro-batch of the last checkpoint; -1 if there is none."""
        found = None if self.latest is None else self.latest.input.batch
        return -1 if found is None else found

    @property
    def next_timer_ms(self) -> int | None:
        """The time of the first processing-time timer."""
        return None if self.latest is None else self.latest.input.next_timer_ms

    @property
    def committed(self) -> CheckpointMetadata | None:
        """The last checkpoint; None also while a sink has not committed it, because its commit has failed."""
        return self.latest if self._unfinished is None else None

    @property
    def read_to(self) -> dict[str, Any] | None:
        """The offset of the last checkpoint's micro-batch, if it is part of the checkpoint."""
        return None if self.latest is None else self.latest.input.read_to

    def epoch_of_batch(self, batch: int) -> tuple[int, str | None]:
        """The epoch of a micro-batch, and the checkpoint before it."""
        if self.latest is None:
            return 1, None
        last = self.latest.checkpoint_id
        number = last + max(0, batch - self.last_batch)
        return number, f"{self.storage.url}/{checkpoint_name(last)}"

    def run(
        self,
        rows: Any,
        batch: int,
        *,
        drains: bool = False,
        read_to: Mapping[str, Any] | None = None,
    ) -> bool:
        """Runs the epoch of a micro-batch. If its checkpoint is already complete, only commits.

        Args:
            rows: The input of the micro-batch.
            batch: Its number.
            drains: Whether event time ends with the epoch.
            read_to: The offset of the micro-batch, for its checkpoint; None if Spark's log has it.

        Returns:
            Whether event time has ended with the epoch.

        Raises:
            CheckpointError: The last checkpoint is not that of the previous micro-batch.
        """
        latest = self.latest
        done = self.last_batch
        if batch <= done:
            assert latest is not None
            self._commit_again(latest)
            return False
        if batch != done + 1:
            raise CheckpointError(
                f"{self.storage.url}: Spark's log continues with micro-batch {batch}, but the "
                f"last complete checkpoint belongs to micro-batch {done}: files are missing; "
                f"restore the folder as a whole"
            )
        self._phases.begin_epoch()
        self._phases.end_phase(WAITING)
        checkpoint_id = 1 if latest is None else latest.checkpoint_id + 1
        was_dropped = is_dropped(self.storage, checkpoint_id)
        replaced = replaced_checkpoint(self.storage, checkpoint_id) if was_dropped else None
        epoch = Epoch(
            checkpoint_id,
            epoch_time_ms(time.time_ns() // 1_000_000, latest, replaced),
            is_first=latest is None,
            is_recorded=self._settings.record_epochs,
            drains=drains,
            keeps_event_time=self._settings.savepoint_at_end is not None,
        )
        self._declined.clear()
        while (outcome := self._completed(rows, epoch, batch, replaced, read_to)) is None:
            epoch = replace(epoch, aborted=(*epoch.aborted, checkpoint_id))
        self._unfinished = partial(self._finish, epoch, batch, outcome, was_dropped=was_dropped)
        reach("completed", checkpoint_id)
        self._phases.end_phase(CHECKPOINT)
        return self._unfinished()

    def finish_failed_epoch(self) -> bool:
        """Commits, prints and collects the output of the last epoch if its commit failed before a restart of the job.

        Returns whether event time has ended with the epoch.
        """
        return self._unfinished is not None and self._unfinished()

    def _finish(self, epoch: Epoch, batch: int, outcome: JobOutcome, *, was_dropped: bool) -> bool:
        """Publishes the output of an epoch whose checkpoint is complete, and reports the epoch.

        Returns whether event time has ended with it.
        """
        self._publish(outcome, epoch.checkpoint_id, was_dropped=was_dropped)
        positions = self._positions(batch)
        for _, source, position in positions:
            source.checkpoint_completed(position)
        self._phases.end_phase(COMMIT)
        self._unfinished = None
        self.outcome = outcome
        self.tasks.epoch_ended(epoch.checkpoint_id)
        self._report(epoch, batch, outcome, positions)
        return epoch.drains

    def _publish(self, outcome: JobOutcome, checkpoint_id: int, *, was_dropped: bool) -> None:
        """Commits, prints and collects the output of an epoch whose checkpoint is complete."""
        commit(self._job, outcome, partial(reach, "between-commits", checkpoint_id))
        if checkpoint_id % _EPOCHS_BETWEEN_SWEEPS == 0 or was_dropped:
            self._discard_orphans()  # output of failed attempts
        print_lines(outcome)
        for kind, uid in list(outcome.records):
            if kind == "collect":
                self._records.put(uid, list(outcome.collected(uid)))
        reach("committed", checkpoint_id)
        if was_dropped:
            forget_replaced(self.storage, checkpoint_id)

    def _report(
        self,
        epoch: Epoch,
        batch: int,
        outcome: JobOutcome,
        positions: Sequence[tuple[str, UnboundedSource, Any]],
    ) -> None:
        """Adds the epoch to the history, with its counts and times."""
        outcome = with_idle_time(self._job, outcome, sum(self._phases.durations_ms.values()))
        progress = epoch_progress(
            self._job,
            outcome,
            epoch,
            run_id=self._run_id,
            batch=batch,
            checkpoint=f"{self.storage.url}/{checkpoint_name(epoch.checkpoint_id)}",
            durations_ms=dict(self._phases.durations_ms),
            splits={
                operator_id: source.split_offsets(read_to)
                for operator_id, source, read_to in positions
            },
            declined=self._declined,
        )
        self._history.add(progress, outcome)

    def waiting_sources(self) -> dict[int, frozenset[str]]:
        """The sources that must wait for their alignment group, by number, after the last epoch.

        The values are the names of the splits that must wait, empty if all splits of the source must.
        """
        if self.outcome is None:
            return {}
        ahead = sources_ahead(self._job, self.outcome.metrics)
        return {
            number: ahead[source.operator.operator_id]
            for number, source in enumerate(self.sources)
            if source.operator.operator_id in ahead
        }

    def are_over(self) -> bool:
        """Whether all sources have ended, so that no later epoch has input."""
        if not self.sources:  # bounded ones are read in one epoch
            return self.outcome is not None or self._has_read_all
        positions = self._positions(self.last_batch)
        return len(positions) == len(self.sources) and all(
            source.is_at_end(read_to) for _, source, read_to in positions
        )

    @property
    def _has_read_all(self) -> bool:
        """Whether the epoch of the last checkpoint has read all bounded sources, in an earlier run."""
        if self.latest is None:
            return False
        read = {source.operator_id for source in self.latest.input.bounded}
        return all(source.operator_id in read for source in bounded_sources(self._job))

    def _positions(self, batch: int) -> list[tuple[str, UnboundedSource[Any], Any]]:
        """The sources that are notified of commits, by operator id, with the end of a micro-batch's input for each."""
        sources = [
            (item.operator.operator_id, item.source)
            for item in self.sources
            if isinstance(item.source, UnboundedSource)
        ]
        if batch < 0 or not any(source.follows_positions for _, source in sources):
            return []
        offset = self.read_to or offset_of(f"{self.storage.url}/{OFFSETS}", batch, POSITIONS)
        if offset is None:
            return []
        pairs = zip(sources, offset[POSITIONS], strict=True)
        return [(operator_id, source, read_to) for (operator_id, source), read_to in pairs]

    def _completed(
        self,
        rows: Any,
        epoch: Epoch,
        batch: int,
        replaced: CheckpointMetadata | None,
        read_to: Mapping[str, Any] | None,
    ) -> JobOutcome | None:
        """Runs an epoch and completes its checkpoint; None if the checkpoint failed and the epoch must be retried.

        Flink continues without a failed checkpoint. Here every epoch needs its checkpoint, so the epoch is retried.

        Raises:
            CheckpointFailedError: More checkpoints in a row have failed than are tolerable.
        """
        job, checkpoint_id = self._job, epoch.checkpoint_id
        pending = self._coordinator.begin(checkpoint_id, job.tasks)
        reach("epoch-begun", checkpoint_id)
        outcome = self._attempted(rows, epoch, pending)
        if outcome is None:
            return None
        with ExitStack() as stack:
            stack.callback(outcome.close)
            if replaced is not None:
                outcome.committables = self._committables_of(replaced)
            for acknowledgement in _acknowledgements(job, outcome):
                pending.acknowledge(acknowledgement)
            reach("acknowledged", checkpoint_id)
            self._phases.end_phase(TASKS)
            try:
                self.latest = self._coordinator.complete(
                    pending,
                    operators_with_state(job, outcome.snapshots),
                    epoch_input=EpochInput(
                        batch,
                        epoch.timestamp_ms,
                        _first_timer(outcome),
                        stored_sources(self.sources),
                        bounded_sources(job),
                        None if read_to is None else dict(read_to),
                    ),
                    committables=_committables(job, outcome),
                    plan=self._plan,
                )
            except OSError as error:
                # The metadata may exist although the storage reported an error, so its files must be kept. If it
                # exists, the next attempt finds it and fails, and a new run resumes from it.
                details = f"its metadata can't be written to {self.storage.url}: {error}"
                self._give_up(pending, DeclineReason.FINALIZE_CHECKPOINT_FAILURE, details)
                return None
            stack.pop_all()  # the outcome is the caller's
        return outcome

    def _attempted(self, rows: Any, epoch: Epoch, pending: PendingCheckpoint) -> JobOutcome | None:
        """Runs the tasks of an epoch; None if they took too long, or could not store their state."""
        checkpoint_id, timeout_ms = epoch.checkpoint_id, self._settings.checkpoint_timeout_ms
        expiry = _Expiry(timeout_ms, self.tasks.cancel)
        try:
            with expiry:
                return self._run_tasks(rows, epoch)
        except BaseException as error:
            abort_epoch(self._job, checkpoint_id, error)
            if expiry.has_expired:
                details = f"it took longer than {timeout_ms} ms"
                self._give_up(pending, DeclineReason.CHECKPOINT_EXPIRED, details)
                return None
            if isinstance(error, CheckpointFailedError):
                self._give_up(pending, DeclineReason.IO_EXCEPTION, str(error))
                return None
            with suppress(CheckpointError):  # the job fails, and says why
                details = f"{type(error).__name__}: {error}"
                self._coordinator.abort(pending, DeclineReason.TASK_FAILURE, details)
            raise

    def _give_up(self, pending: PendingCheckpoint, reason: DeclineReason, details: str) -> None:
        self._declined.append(reason.name)
        self._coordinator.abort(pending, reason, details)
        failed = "checkpoint %d failed (%s): %s; retrying its epoch"
        _LOG.warning(failed, pending.checkpoint_id, reason.name, details)

    def _discard_orphans(self) -> None:
        discard_orphans(self._job, self._lineage, self._coordinator.lease.require, self._staging)

    def _run_tasks(self, rows: Any, epoch: Epoch) -> JobOutcome:
        try:
            return self.tasks.run(rows, epoch, self.latest, self.sources)
        except CorruptCheckpointError as failure:
            if self.latest is None:
                raise
            raise suggest_earlier_checkpoint(
                self.storage, failure, self.latest.checkpoint_id
            ) from failure

    def _commit_again(self, metadata: CheckpointMetadata) -> None:
        """Commits the committables of a checkpoint again: a driver may have died before it did."""
        commit(self._job, JobOutcome(committables=self._committables_of(metadata)))
        for _, source, read_to in self._positions(self.last_batch):
            source.checkpoint_completed(read_to)

    def _committables_of(self, metadata: CheckpointMetadata) -> dict[tuple[int, int], list[Any]]:
        """The committables of sinks before a checkpoint, by vertex and operator."""
        job = self._job
        places = {
            operator.operator_id: (number, operator.index)
            for number, vertex in enumerate(job.vertices)
            for operator in vertex.operators
        }
        sinks = dict.fromkeys(item.operator_id for item in metadata.committables)
        for operator_id in (each for each in sinks if each not in places):
            what = (
                f"{self.storage.url}: checkpoint {metadata.checkpoint_id} has output of the sink "
                f"{operator_id} that may not be committed, and the program has no such sink"
            )
            if not self._settings.allow_non_restored_state:
                raise CheckpointError(
                    f"{what}: run the previous program, give the sink its old uid, or "
                    f"{ALLOW_NON_RESTORED_STATE} to ignore this"
                )
            _LOG.warning("%s: ignored", what)
        found: dict[tuple[int, int], list[Any]] = {}
        for committable in metadata.committables:
            place = places.get(committable.operator_id)
            if place is not None:
                found.setdefault(place, []).append(pickle.loads(committable.handle))
        return found


def _first_timer(outcome: JobOutcome) -> int | None:
    times = (snapshot.next_timer_ms for snapshot in outcome.snapshots.values())
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


def _acknowledgements(job: JobProgram, outcome: JobOutcome) -> Iterator[TaskMetadata]:
    """The state files of each task."""
    for vertex in job.vertices:
        for subtask, task in enumerate(vertex.tasks):
            snapshot = outcome.snapshots[task]
            yield TaskMetadata(
                task,
                vertex.vertex_id,
                subtask,
                snapshot.state,
                snapshot.event_time,
                snapshot.recorded,
            )


def _committables(job: JobProgram, outcome: JobOutcome) -> list[Committable]:
    """The committables of sinks, by vertex."""
    return [
        Committable(job.vertices[number].operators[index].operator_id, 0, pickle.dumps(handle, 5))
        for (number, index), handles in sorted(
            outcome.committables.items(), key=lambda item: job.vertices[item[0][0]].first_task
        )
        for handle in handles
    ]
