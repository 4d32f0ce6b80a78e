"""The epochs of an unbounded job, each from its micro-batch to its commits."""

from __future__ import annotations

import logging
import pickle
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.coordinator import Acknowledgement, DeclineReason
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.checkpoint.epoch_files import checkpoint_name
from opchain.runtime.checkpoint.fall_back import (
    dropped_checkpoints,
    forget_replaced,
    is_dropped,
    offering_earlier,
    replaced_checkpoint,
)
from opchain.runtime.checkpoint.fault_points import reach
from opchain.runtime.checkpoint.metadata import (
    BATCH,
    CLOCK,
    TIMER,
    Committable,
    SourcePosition,
    position,
)
from opchain.runtime.checkpoint.restore_plan import match_state, operators_of, plan_restore
from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.checkpoint.source_places import bounded_sources
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.epochs.epoch_progress import (
    CHECKPOINT,
    COMMIT,
    TASKS,
    WAITING,
    PhaseClock,
    epoch_progress,
)
from opchain.runtime.epochs.event_time import epoch_time_ms, sources_ahead
from opchain.runtime.epochs.live_tasks import live_tasks, operators_with_state, restored_vertices
from opchain.runtime.errors import CheckpointError, CheckpointFailedError, CorruptCheckpointError
from opchain.runtime.job.orphans import abort_epoch, discard_orphans, require_no_later_commits
from opchain.runtime.shipping.outcome import (
    JobOutcome,
    commit,
    print_lines,
    read_outcome,
    with_waiting,
)
from opchain.runtime.spark.dataframes import arrow_batches, has_large_types
from opchain.runtime.spark.exchange import collected, from_frame, shuffled, written_raw
from opchain.runtime.spark.job_failure import failure_of
from opchain.runtime.spark.stage_line import stage_name
from opchain.runtime.spark.stage_progress import LiveCounts, sending_counts
from opchain.runtime.spark.stage_tasks import StageTasks
from opchain.runtime.spark.streaming.clock_source import POSITIONS
from opchain.runtime.spark.streaming.deliver import Deliver
from opchain.runtime.spark.streaming.input_log import in_places, offset_of, places_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import DataFrame

    from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator, PendingCheckpoint
    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.checkpoint.restore_plan import RestorePlan
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.epochs.epoch_history import EpochHistory
    from opchain.runtime.epochs.live_tasks import RestoredVertex
    from opchain.runtime.job.collected_records import CollectedRecords
    from opchain.runtime.program.vertex_program import JobProgram, StageProgram
    from opchain.runtime.records.elements import Buffer
    from opchain.runtime.spark.stage_line import StageLine
    from opchain.runtime.spark.stage_tasks import ShippedJob, ShippedVertex
    from opchain.runtime.spark.streaming.delivered_sources import DeliveredSource
    from opchain.runtime.spark.streaming.stream_writers import StreamWriters


class EpochStageTasks(StageTasks):
    """The function of a stage in one epoch.

    `restored` has what each vertex of the stage continues with, by the first task of the vertex.
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
        frames: Iterable[bytes],  # noqa: ARG002 - all input of an epoch comes as buffers
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


class _Expiry:
    """Ends the stages of an epoch that takes too long. Flink: the canceller of `PendingCheckpoint`."""

    def __init__(self, timeout_ms: int | None, cancel_stages: Callable[[], None]) -> None:
        self.is_over = False
        self._cancel_stages = cancel_stages
        self._timer = None if timeout_ms is None else Timer(timeout_ms / 1000, self._expire)

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.is_over = True
        self._cancel_stages()


_EPOCHS_BETWEEN_SWEEPS = 100

_LOG = logging.getLogger("opchain.epochs")


class Epochs:
    """The epochs of one run; used by one thread at a time.

    Args:
        job: The job.
        run_id: What tells this run from all others.
        line: Draws its stages.
        shipped: What its tasks share.
        sources: Its unbounded sources.
        storage: Where tasks write their state.
        coordinator: Completes checkpoints.
        records: Where those of collecting sinks go.
        writers: Its sinks that are stream writers of Spark's.
        history: Hears of each epoch that is over.
        live: Takes what the tasks of the epoch that runs have counted so far.
        plan: The job's plan, for the metadata.
        allow_non_restored_state: Whether state may be dropped that no operator takes, and what a sink wrote
            that is gone.
        records_epochs: Whether checkpoints keep what it takes to run their epochs again.
        accepts_duplicates: Whether output that is later than the last checkpoint may be written again.
        timeout_ms: After how long an epoch's checkpoint fails; None for never.
        cancel_stages: Ends Spark's jobs of the epoch that runs.

    Raises:
        CheckpointError: The job can't resume from the last checkpoint.

    Attributes:
        outcome: That of the last epoch; None before it.
        sources: Its unbounded sources, in the order of Spark's log.
        restarts: How often the job has started again; its tasks are made again then.
    """

    def __init__(
        self,
        job: JobProgram,
        run_id: str,
        line: StageLine,
        shipped: ShippedJob,
        sources: Sequence[DeliveredSource],
        *,
        storage: CheckpointStorage,
        coordinator: CheckpointCoordinator,
        records: CollectedRecords,
        writers: StreamWriters,
        history: EpochHistory,
        live: LiveCounts | None = None,
        plan: Mapping[str, Any] | None = None,
        allow_non_restored_state: bool = False,
        records_epochs: bool = False,
        accepts_duplicates: bool = False,
        timeout_ms: int | None = None,
        keeps_event_time: bool = False,
        cancel_stages: Callable[[], None] = lambda: None,
    ) -> None:
        self._timeout_ms = timeout_ms
        self._keeps_event_time = keeps_event_time
        self._cancel_stages = cancel_stages
        self._declined: list[str] = []
        self._job = job
        self._records_epochs = records_epochs
        self._run_id = run_id
        self._line = line
        self._shipped = shipped
        self._storage = storage
        self._coordinator = coordinator
        self._records = records
        self._writers = writers
        self._history = history
        self._live = live or LiveCounts()
        self._phases = PhaseClock()
        self._plan = plan
        self._allows_non_restored = allow_non_restored_state
        self.outcome: JobOutcome | None = None
        self.restarts = 0
        self._latest = coordinator.latest()
        if self._latest is not None:
            match_state(self._latest, job, allow_non_restored_state=allow_non_restored_state)
        self.sources = in_places(sources, self._latest)
        require_no_later_commits(
            job,
            shipped.lineage,
            storage.url,
            0 if self._latest is None else self._latest.epoch,
            partial(is_dropped, storage),
            accepts_duplicates=accepts_duplicates,
        )
        if self._latest is not None:
            self._commit_again(self._latest)
        for dropped in dropped_checkpoints(
            storage, 0 if self._latest is None else self._latest.epoch
        ):
            self._commit_again(dropped)
        self._discard_orphans()  # of runs that were killed

    @property
    def last_batch(self) -> int:
        """The micro-batch of the last checkpoint; -1 if there is none."""
        found = None if self._latest is None else position(self._latest, BATCH)
        return -1 if found is None else int(found)

    @property
    def next_timer_ms(self) -> int | None:
        """When the first processing-time timer is due."""
        return None if self._latest is None else position(self._latest, TIMER)

    @property
    def latest(self) -> CheckpointMetadata | None:
        """The last checkpoint."""
        return self._latest

    def place_of(self, batch: int) -> tuple[int, str | None]:
        """The number of a micro-batch's epoch, and the last checkpoint, from which a run goes on."""
        if self._latest is None:
            return 1, None
        last = self._latest.epoch
        number = last + max(0, batch - self.last_batch)
        return number, f"{self._storage.url}/{checkpoint_name(last)}"

    def run(self, rows: DataFrame, batch: int, *, drains: bool = False) -> bool:
        """Runs the epoch of a micro-batch; only commits where its checkpoint is complete already.

        Args:
            rows: What the micro-batch brings.
            batch: Its number.
            drains: Whether event time ends with the epoch.

        Returns:
            Whether the epoch ran.

        Raises:
            CheckpointError: The checkpoint before is not that of the micro-batch before.
        """
        latest = self._latest
        done = self.last_batch
        if batch <= done:
            assert latest is not None
            self._commit_again(latest)
            return False
        if batch != done + 1:
            raise CheckpointError(
                f"{self._storage.url}: Spark's log continues with micro-batch {batch}, but the "
                f"last complete checkpoint belongs to micro-batch {done}: files are missing; "
                f"restore the folder as a whole"
            )
        job, phases = self._job, self._phases
        phases.begin_epoch()
        phases.ends(WAITING)
        checkpoint_id = 1 if latest is None else latest.epoch + 1
        was_dropped = is_dropped(self._storage, checkpoint_id)
        replaced = replaced_checkpoint(self._storage, checkpoint_id) if was_dropped else None
        now_ms = epoch_time_ms(time.time_ns() // 1_000_000, latest, replaced)
        epoch = Epoch(
            checkpoint_id,
            now_ms,
            is_first=latest is None,
            is_recorded=self._records_epochs,
            drains=drains,
            keeps_event_time=self._keeps_event_time,
        )
        self._declined.clear()
        outcome = self._completed(rows, epoch, batch, replaced)
        while outcome is None:
            epoch = replace(epoch, aborted=(*epoch.aborted, checkpoint_id))
            outcome = self._completed(rows, epoch, batch, replaced)
        reach("completed", checkpoint_id)
        phases.ends(CHECKPOINT)
        commit(job, outcome, partial(reach, "between-commits", checkpoint_id))
        if checkpoint_id % _EPOCHS_BETWEEN_SWEEPS == 0 or was_dropped:
            self._discard_orphans()  # of attempts that lost
        print_lines(outcome)
        for kind, uid in list(outcome.records):
            if kind == "collect":
                self._records.put(uid, list(outcome.collected(uid)))
        reach("committed", checkpoint_id)
        if was_dropped:
            forget_replaced(self._storage, checkpoint_id)
        positions = self._positions(batch)
        for _, source, read_to in positions:
            source.checkpoint_completed(read_to)
        phases.ends(COMMIT)
        self.outcome = outcome
        self._live.begin(None, checkpoint_id + 1)
        outcome = with_waiting(job, outcome, sum(phases.durations_ms.values()))
        self._history.add(
            epoch_progress(
                job,
                outcome,
                epoch,
                run_id=self._run_id,
                batch=batch,
                checkpoint=f"{self._storage.url}/{checkpoint_name(checkpoint_id)}",
                durations_ms=dict(phases.durations_ms),
                splits={
                    operator_id: source.progress_of(read_to)
                    for operator_id, source, read_to in positions
                },
                declined=self._declined,
            ),
            outcome,
        )
        return True

    def waiting_sources(self) -> list[int]:
        """The numbers of the sources that are ahead of those that they are aligned with, after the last epoch."""
        if self.outcome is None:
            return []
        ahead = sources_ahead(self._job, self.outcome.metrics)
        return [n for n, source in enumerate(self.sources) if source.operator.operator_id in ahead]

    def are_over(self) -> bool:
        """Whether all sources have ended: no epoch will have anything to read."""
        if not self.sources:  # bounded ones are read in one epoch
            return self.outcome is not None
        positions = self._positions(self.last_batch)
        return len(positions) == len(self.sources) and all(
            source.is_at_end(read_to) for _, source, read_to in positions
        )

    def _positions(self, batch: int) -> list[tuple[str, UnboundedSource[Any], Any]]:
        """The sources that want to hear of it, by operator id, and up to where a micro-batch read each of them."""
        sources = [
            (item.operator.operator_id, item.source)
            for item in self.sources
            if isinstance(item.source, UnboundedSource)
        ]
        if batch < 0 or not any(source.follows_positions for _, source in sources):
            return []
        offset = offset_of(f"{self._storage.url}/{OFFSETS}", batch, POSITIONS)
        if offset is None:
            return []
        pairs = zip(sources, offset[POSITIONS], strict=True)
        return [(operator_id, source, read_to) for (operator_id, source), read_to in pairs]

    def _completed(
        self, rows: DataFrame, epoch: Epoch, batch: int, replaced: CheckpointMetadata | None
    ) -> JobOutcome | None:
        """Runs an epoch up to its complete checkpoint; None where that failed and is to be tried again.

        Flink continues without a checkpoint that failed. Here an epoch can't be without, and is run again.

        Raises:
            CheckpointError: More checkpoints failed in a row than are tolerable.
        """
        job, checkpoint_id = self._job, epoch.checkpoint_id
        tasks = range(sum(vertex.parallelism for vertex in job.vertices))
        pending = self._coordinator.begin(checkpoint_id, tasks)
        reach("epoch-begun", checkpoint_id)
        expiry = _Expiry(self._timeout_ms, self._cancel_stages)
        try:
            with expiry:
                outcome = self._run_stages(rows, epoch)
        except BaseException as error:
            abort_epoch(job, checkpoint_id, error)
            if expiry.is_over:
                details = f"checkpoint {checkpoint_id} took longer than {self._timeout_ms} ms"
                self._give_up(pending, DeclineReason.CHECKPOINT_EXPIRED, details)
                return None
            if isinstance(error, CheckpointFailedError):
                self._give_up(pending, DeclineReason.IO_EXCEPTION, str(error))
                return None
            with suppress(CheckpointError):  # the job fails, and says why
                details = f"{type(error).__name__}: {error}"
                self._coordinator.abort(pending, DeclineReason.TASK_FAILURE, details)
            raise
        if replaced is not None:
            outcome.committables = self._committables_of(replaced)
        for acknowledgement in _acknowledgements(job, outcome):
            pending.acknowledge(acknowledgement)
        reach("acknowledged", checkpoint_id)
        self._phases.ends(TASKS)
        try:
            self._latest = self._coordinator.complete(
                pending,
                operators_with_state(job, outcome.snapshots),
                sources=[
                    SourcePosition(BATCH, batch),
                    SourcePosition(TIMER, _first_timer(outcome)),
                    SourcePosition(CLOCK, epoch.timestamp_ms),
                    places_of(self.sources),
                    bounded_sources(job),
                ],
                plan=self._plan,
            )
        except OSError as error:
            # Perhaps the metadata is there all the same: nothing that it refers to may go. Then the next
            # attempt finds it and fails, and a new run resumes from it.
            where = f"checkpoint {checkpoint_id} could not be completed in {self._storage.url}"
            outcome.close()
            self._give_up(pending, DeclineReason.FINALIZE_CHECKPOINT_FAILURE, f"{where}: {error}")
            return None
        return outcome

    def _give_up(self, pending: PendingCheckpoint, reason: DeclineReason, details: str) -> None:
        self._declined.append(reason.name)
        self._coordinator.abort(pending, reason, details)
        _LOG.warning("%s (%s); retrying its epoch", details, reason.name)

    def _discard_orphans(self) -> None:
        shipped = self._shipped
        discard_orphans(
            self._job, shipped.lineage, self._coordinator.lease.require, shipped.staging
        )

    def _run_stages(self, rows: DataFrame, epoch: Epoch) -> JobOutcome:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
        from pyspark.errors import PySparkException  # noqa: PLC0415

        restored = restored_vertices(self._job, self._plan_of_restore())
        shipped = replace(
            self._shipped,
            restarts=self.restarts,
            live=self._live.begin(self._shipped.live, epoch.checkpoint_id),
        )
        last = self._line.last_stage(
            self._delivered(rows),
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
            return read_outcome(self._job, map(from_frame, collected(last)))
        except (Py4JError, PySparkException) as error:
            failure = failure_of(error, self._job, self._shipped.seal)
            if isinstance(failure, CorruptCheckpointError) and self._latest is not None:
                raise offering_earlier(self._storage, failure, self._latest.epoch) from failure
            raise failure  # noqa: B904 - it has its cause

    def _plan_of_restore(self) -> RestorePlan | None:
        latest = self._latest
        return None if latest is None else plan_restore(latest, operators_of(self._job))

    def _delivered(self, rows: DataFrame) -> RDD[Any]:
        first = self._job.stages[0]
        session = rows.sparkSession
        deliver = Deliver(
            rows.schema.json(),
            tuple((source.first_task, source.parallelism) for source in self.sources),
            first,
            has_large_types=has_large_types(session),
            seal=self._shipped.seal,
        )
        delivered = arrow_batches(rows).mapPartitionsWithIndex(deliver)
        delivered = written_raw(delivered).setName("deliveries")
        return shuffled(delivered, len(first.slots), f"to {stage_name(self._job, first)}")

    def _commit_again(self, metadata: CheckpointMetadata) -> None:
        """Commits what a checkpoint holds: a driver may have died before it did."""
        commit(self._job, JobOutcome(committables=self._committables_of(metadata)))
        for _, source, read_to in self._positions(self.last_batch):
            source.checkpoint_completed(read_to)

    def _committables_of(self, metadata: CheckpointMetadata) -> dict[tuple[int, int], list[Any]]:
        """What the sinks wrote before a checkpoint, by vertex and operator."""
        job = self._job
        places = {
            operator.operator_id: (number, operator.index)
            for number, vertex in enumerate(job.vertices)
            for operator in vertex.operators
        }
        found: dict[tuple[int, int], list[Any]] = {}
        for committable in metadata.committables:
            place = places.get(committable.operator_id)
            if place is None:
                what = (
                    f"{self._storage.url}: checkpoint {metadata.epoch} holds what the sink "
                    f"{committable.operator_id} wrote and has perhaps not committed, and the program has no "
                    "such sink"
                )
                if not self._allows_non_restored:
                    raise CheckpointError(
                        f"{what}: run the previous program, give the sink its old uid, or allow "
                        f"non-restored state to ignore this"
                    )
                _LOG.warning("%s: ignored", what)
                continue
            found.setdefault(place, []).append(pickle.loads(committable.handle))
        return found


def _first_timer(outcome: JobOutcome) -> int | None:
    times = (snapshot.next_timer_ms for snapshot in outcome.snapshots.values())
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


def _acknowledgements(job: JobProgram, outcome: JobOutcome) -> list[Acknowledgement]:
    """One per task; the committables ride with the first task of their vertex."""
    committables: dict[int, list[Committable]] = {}
    for (number, index), handles in outcome.committables.items():
        vertex = job.vertices[number]
        operator_id = vertex.operators[index].operator_id
        committables.setdefault(vertex.first_task, []).extend(
            Committable(operator_id, 0, pickle.dumps(handle, 5)) for handle in handles
        )
    found = []
    for vertex in job.vertices:
        for subtask in range(vertex.parallelism):
            task = vertex.first_task + subtask
            snapshot = outcome.snapshots[task]
            found.append(
                Acknowledgement(
                    task,
                    vertex.vertex_id,
                    subtask,
                    snapshot.state,
                    snapshot.progress,
                    tuple(committables.get(task, ())),
                    snapshot.recorded,
                )
            )
    return found
