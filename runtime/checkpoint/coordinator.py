"""Checkpoints on the driver: begun, acknowledged by every task, completed in one step, retained, deleted.

    coordinator = CheckpointCoordinator.open(storage, job_name, run_id)   # refuses a second run
    latest = coordinator.latest()                                         # start from here
    pending = coordinator.begin(epoch, tasks)
    pending.acknowledge(TaskMetadata(task, ...))                          # once per task
    metadata = coordinator.complete(pending, operators, sources=..., plan=...)   # one publish
    coordinator.close()

A checkpoint is complete as soon as its metadata is published. Until then, the last complete checkpoint stays as it
was, whatever process dies. Sinks commit after the checkpoint is complete. If the run dies before that, the next run
commits: it starts with `latest`, which contains the committables.

A state file may belong to many checkpoints. It is deleted with the last checkpoint that refers to it. Files without
a checkpoint are left by failed attempts and failed epochs. They are deleted once their epoch or a later one is
complete: a task only appends to files of the last epoch that it wrote, and the checkpoint refers to those.

The id of the directory (its *lineage*) is a file. Sinks mark hidden output with it until they commit. Only one run at a
time holds the directory's lease. So hidden output that has the mark, and is not in the last checkpoint, belongs to no
run and can be removed.

Flink: `CheckpointCoordinator`, `PendingCheckpoint`, `DefaultCompletedCheckpointStore`, `SharedStateRegistry`.
"""

from __future__ import annotations

import logging
import math
import re
import uuid
from enum import Enum
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.epoch_files import (
    completed_epochs,
    fence_document,
    fence_next_epoch,
    file_names,
    last_file,
    name_to_publish,
)
from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    Committable,
    OperatorMetadata,
    SourcePosition,
    TaskMetadata,
    decode,
    encode,
    latest_checkpoint,
    read_metadata,
)
from opchain.runtime.checkpoint.run_lease import RunLease
from opchain.runtime.checkpoint.state_files import FOLDER
from opchain.runtime.errors import (
    CheckpointError,
    CheckpointInUseError,
    CorruptCheckpointError,
    short_repr,
)
from opchain.runtime.mailbox.timer_service import wall_clock_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from opchain.runtime.checkpoint.storage import CheckpointStorage


_SHOWN_TASKS = 10


class PendingCheckpoint:
    """A checkpoint that some tasks have not acknowledged yet; made by CheckpointCoordinator.begin.

    Attributes:
        epoch: Its number.
        timestamp_ms: When it was begun.
        acknowledged: The acknowledgements so far, by task.
    """

    def __init__(self, epoch: int, timestamp_ms: int, tasks: Iterable[int]) -> None:
        self.epoch = epoch
        self.timestamp_ms = timestamp_ms
        self.acknowledged: dict[int, TaskMetadata] = {}
        self._tasks = dict.fromkeys(sorted(tasks))

    def acknowledge(self, acknowledgement: TaskMetadata) -> None:
        """Takes a task's acknowledgement: where its state is.

        Raises:
            CheckpointError: The task is none of this checkpoint's, has acknowledged before, or speaks of
                another epoch.
        """
        task = acknowledgement.task
        if task not in self._tasks:
            raise CheckpointError(
                f"task {task} acknowledges checkpoint {self.epoch}, which does not include that "
                f"task"
            )
        if task in self.acknowledged:
            raise CheckpointError(f"task {task} acknowledges checkpoint {self.epoch} a second time")
        if acknowledgement.state.epoch != self.epoch:
            raise CheckpointError(
                f"task {task} acknowledges checkpoint {self.epoch} with the state of epoch "
                f"{acknowledgement.state.epoch}"
            )
        self.acknowledged[task] = acknowledgement

    @property
    def missing(self) -> list[int]:
        """The tasks that have not acknowledged, in order."""
        return [task for task in self._tasks if task not in self.acknowledged]

    def require_all(self) -> list[TaskMetadata]:
        """The acknowledgements of all tasks, in order.

        Raises:
            CheckpointError: Some are missing.
        """
        missing = self.missing
        if missing:
            shown = ", ".join(map(str, missing[:_SHOWN_TASKS]))
            more = len(missing) - _SHOWN_TASKS
            raise CheckpointError(
                f"checkpoint {self.epoch} can't be completed: of {len(self._tasks)} tasks, {len(missing)} "
                f"have not acknowledged ({shown}{f' and {more} more' if more > 0 else ''})"
            )
        return [self.acknowledged[task] for task in self._tasks]


_LOG = logging.getLogger(__name__)

_COMPLETED_BETWEEN_SWEEPS = 100


class DeclineReason(Enum):
    """Why a checkpoint failed. Flink: CheckpointFailureReason, whose names these are."""

    CHECKPOINT_EXPIRED = "the epoch took longer than execution.checkpointing.timeout"
    IO_EXCEPTION = "a task could not write its state"
    FINALIZE_CHECKPOINT_FAILURE = "the metadata could not be published"
    TASK_FAILURE = "a task failed"


class CheckpointCoordinator:
    """The checkpoints of one run; see the module. Used by one thread.

    Attributes:
        lease: The run's hold on the place.
    """

    def __init__(
        self,
        storage: CheckpointStorage,
        lease: RunLease,
        *,
        retained: int,
        tolerable_failures: int,
        now_ms: Callable[[], int],
    ) -> None:
        self.lease = lease
        self._storage = storage
        self._retained = retained
        self._tolerable_failures = tolerable_failures
        self._now_ms = now_ms
        self._pending: PendingCheckpoint | None = None
        self._failures = 0
        self._completed: list[CheckpointMetadata] | None = None
        self._completed_count = 0

    @classmethod
    def open(
        cls,
        storage: CheckpointStorage,
        job_name: str,
        run_id: str,
        *,
        retained: int = 1,
        tolerable_failures: int = 0,
        lease_ms: int = 60_000,
        keeps_alive: bool = True,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> CheckpointCoordinator:
        """Takes the place for a run, and fences all runs before it; see epoch_files.py.

        Args:
            storage: The place.
            job_name: For messages and the metadata.
            run_id: What tells this run from all others.
            retained: How many completed checkpoints are kept, at least 1.
            tolerable_failures: How many checkpoints in a row may fail.
            lease_ms: How long a run of another machine counts as alive that gives no heartbeat.
            keeps_alive: Whether a thread gives heartbeats.
            now_ms: The clock; the machine's if not given.

        Raises:
            CheckpointInUseError: Another run has the place: the message says which, and since when.
        """
        if retained < 1:
            raise ValueError(
                f"{retained} is the number of retained checkpoints; it must be at least 1"
            )
        lease = RunLease.take(storage, job_name, run_id, lease_ms, now_ms)
        try:
            if keeps_alive:
                lease.keep_alive()
            if not lease.is_settled:
                fence_next_epoch(storage, lease.run.number, lease.require)
                lease.is_settled = True
        except BaseException:
            lease.close()
            raise
        return cls(
            storage,
            lease,
            retained=retained,
            tolerable_failures=tolerable_failures,
            now_ms=now_ms,
        )

    def latest(self) -> CheckpointMetadata | None:
        """The last completed checkpoint, None where there is none; see `latest_checkpoint`."""
        return latest_checkpoint(self._storage)

    def begin(self, epoch: int, tasks: Iterable[int]) -> PendingCheckpoint:
        """Begins a checkpoint that these tasks are to acknowledge.

        Raises:
            CheckpointInUseError: Another run has taken the place over.
            CheckpointError: The epoch is not after the last completed one, or another is pending.
        """
        self.lease.require()
        if self._pending is not None:
            raise CheckpointError(
                f"checkpoint {epoch} cannot start while checkpoint {self._pending.epoch} is "
                f"pending; complete or abort it first"
            )
        completed = self._retained_checkpoints()
        if completed and epoch <= completed[-1].epoch:
            raise CheckpointError(
                f"checkpoint {epoch} cannot start: checkpoint {completed[-1].epoch} is already "
                f"complete"
            )
        self._pending = PendingCheckpoint(epoch, self._now_ms(), tasks)
        return self._pending

    def complete(
        self,
        pending: PendingCheckpoint,
        operators: Sequence[OperatorMetadata],
        *,
        sources: Sequence[SourcePosition] = (),
        committables: Sequence[Committable] = (),
        plan: Mapping[str, Any] | None = None,
    ) -> CheckpointMetadata:
        """Makes a checkpoint complete: its metadata is published, and old checkpoints go.

        Raises:
            CheckpointInUseError: Another run has completed this epoch, or taken the place over.
            CheckpointError: Acknowledgements are missing, the checkpoint is not pending, or an attempt before was
                complete after all.
        """
        self._require_pending(pending)
        metadata = CheckpointMetadata(
            epoch=pending.epoch,
            timestamp_ms=pending.timestamp_ms,
            job_name=self.lease.run.job_name,
            run_id=self.lease.run.run_id,
            operators=tuple(operators),
            tasks=tuple(pending.require_all()),
            sources=tuple(sources),
            committables=tuple(committables),
            plan=None if plan is None else dict(plan),
        )
        self._publish(metadata)
        self._pending, self._failures = None, 0
        self._retain(metadata)
        return metadata

    def abort(self, pending: PendingCheckpoint, reason: DeclineReason, details: str) -> None:
        """Aborts a checkpoint. Its files stay until a later checkpoint is complete: chains may resume from them.

        Args:
            pending: The checkpoint.
            reason: Why, for the message.
            details: What failed.

        Raises:
            CheckpointError: More checkpoints in a row have failed than are tolerable.
        """
        self._require_pending(pending)
        self._pending = None
        self._failures += 1
        if self._failures > self._tolerable_failures:
            raise CheckpointError(
                f"checkpoint {pending.epoch} failed ({reason.name}): {details}; {self._failures} in a row, "
                f"tolerable: {self._tolerable_failures}"
            )

    def sweep(self) -> list[str]:
        """Removes state files that no checkpoint refers to and none will; returns their names."""
        self.lease.require()
        return sweep(self._storage)

    def discard_after(self, epoch: int) -> list[int]:
        """Drops the completed checkpoints after an epoch, and gives their epochs; 0 drops all.

        For a run that starts from an earlier checkpoint, as the last one can't be read, and comes by these
        epochs again. What is dropped need not be readable.
        """
        self.lease.require()
        dropped = [found for found in completed_epochs(self._storage) if found > epoch]
        # The files are looked up before the lease is checked: if another run takes over after the check, what is
        # written late replaces the damaged file, and not the checkpoint that the other run has published since.
        files = [last_file(self._storage, found) for found in reversed(dropped)]
        self.lease.require()
        for file in files:
            if file is not None:
                # A fence in its place: what an earlier run still writes or removes there changes nothing.
                self._storage.write(file.name, fence_document(self.lease.run.number))
        self._completed = None
        return dropped

    def close(self) -> None:
        """Releases the directory for other runs."""
        self.lease.close()

    def _require_pending(self, pending: PendingCheckpoint) -> None:
        if pending is not self._pending:
            raise CheckpointError(f"checkpoint {pending.epoch} is not the pending checkpoint")

    def _publish(self, metadata: CheckpointMetadata) -> None:
        storage, epoch = self._storage, metadata.epoch
        self.lease.require()
        data = encode(metadata, storage.key)
        self.lease.is_settled = False  # until the storage has answered
        while True:
            name = name_to_publish(storage, epoch, self.lease.run.number)
            try:
                storage.publish(name, data)
            except FileExistsError:
                last = last_file(storage, epoch)
                if last is not None and (last.fenced_by or math.inf) < self.lease.run.number:
                    continue  # the fence of a run that this one has replaced came late
                self.lease.is_settled = True
                self._require_own(metadata)
            break
        self.lease.is_settled = True
        self._require_still(epoch, name)

    def _require_own(self, metadata: CheckpointMetadata) -> None:
        """Makes sure that the file whose name was taken is the one that this run has just published."""
        storage, epoch = self._storage, metadata.epoch
        last = last_file(storage, epoch)
        if last is None or last.fenced_by is not None:
            self.lease.require()
            by = "a later run" if last is None else f"run number {last.fenced_by}"
            raise CheckpointInUseError(
                f"checkpoint {epoch} of {storage.url} can't be completed: {by} has taken over from this run, "
                f"{self.lease.run}, which must stop"
            )
        other = decode(last.data, storage.full_name(last.name), storage.key)
        if other != metadata and other.run_id == metadata.run_id:
            raise CheckpointError(
                f"checkpoint {epoch} of {storage.url} is complete, although its storage reported "
                f"an error: start the job again to resume from this checkpoint"
            )
        if other != metadata:
            raise CheckpointInUseError(
                f"checkpoint {epoch} of {storage.url} was completed by run "
                f"{other.run_id} of '{other.job_name}'; this is run {metadata.run_id}, which must stop"
            )
        # Else the storage has answered the first time, and nobody heard it.

    def _require_still(self, epoch: int, name: str) -> None:
        """Makes sure after a publish that no run has taken over.

        The fence of a run that took over may be gone again: that run has completed this epoch and later ones, and
        has dropped it. Then the name was free. A run that takes over says so before it looks for the last
        checkpoint, so this check finds that run, or that run has found this checkpoint.

        Raises:
            CheckpointInUseError: Another run has the place; nothing may be committed.
        """
        try:
            self.lease.require()
        except CheckpointInUseError:
            if max(completed_epochs(self._storage), default=0) > epoch:
                self._storage.delete(name)  # nobody resumes from it
            raise

    def _retained_checkpoints(self) -> list[CheckpointMetadata]:
        if self._completed is None:
            epochs = completed_epochs(self._storage)
            earlier = filter(None, map(self._readable, epochs[:-1]))
            last = (read_metadata(self._storage, epoch) for epoch in epochs[-1:])
            self._completed = [*earlier, *last]
        return self._completed

    def _readable(self, epoch: int) -> CheckpointMetadata | None:
        """A checkpoint before the last; one that is damaged goes, as nobody can resume from it."""
        try:
            return read_metadata(self._storage, epoch)
        except CorruptCheckpointError as error:
            _LOG.warning(
                "checkpoint %d is discarded, because a later one is complete: %s", epoch, error
            )
            for name in file_names(self._storage, epoch):
                self._storage.delete(name)
            return None

    def _retain(self, metadata: CheckpointMetadata) -> None:
        """Drops what is retained no more; a file that can't be removed now goes with a later sweep."""
        completed = self._retained_checkpoints()
        completed.append(metadata)
        self._completed_count += 1
        try:
            while len(completed) > self._retained:
                drop_checkpoint(self._storage, completed.pop(0), completed)
            if self._completed_count % _COMPLETED_BETWEEN_SWEEPS == 0:
                self.sweep()
        except OSError as error:
            _LOG.warning("cannot delete old checkpoint files of %s: %s", self._storage.url, error)


_FILE = "lineage"
_ID = re.compile(rb"[0-9a-f]{32}")


def lineage_of(storage: CheckpointStorage) -> str:
    """The id of a directory, created if it has none. The caller holds the lease."""
    try:
        return _read(storage)
    except FileNotFoundError:
        lineage = uuid.uuid4().hex
    try:
        storage.publish(_FILE, lineage.encode())
    except FileExistsError:  # another run has replaced this one and written it
        return _read(storage)
    return lineage


def _read(storage: CheckpointStorage) -> str:
    """The id, which becomes a part of names of files.

    Raises:
        CorruptCheckpointError: The file holds something else.
    """
    data = storage.read(_FILE)
    if _ID.fullmatch(data) is None:
        raise CorruptCheckpointError(
            storage.full_name(_FILE),
            f"holds {short_repr(data)}, but 32 hexadecimal digits are expected: restore the file "
            f"from a backup. Without it, hidden output that earlier runs wrote and did not "
            f"commit is never cleaned up",
        )
    return data.decode("ascii")


def drop_checkpoint(
    storage: CheckpointStorage, dropped: CheckpointMetadata, kept: Collection[CheckpointMetadata]
) -> list[str]:
    """Removes a checkpoint and the files that no other checkpoint refers to; returns their names.

    The metadata is removed first, so a checkpoint never exists without its files.
    """
    needed = {name for metadata in kept for name in metadata.all_files}
    for name in file_names(storage, dropped.epoch):  # its own comes last, fences before
        storage.delete(name)
    gone = [name for name in dropped.all_files if name not in needed]
    for name in gone:
        storage.delete(name)
    return gone


def sweep(storage: CheckpointStorage) -> list[str]:
    """Removes state files that nothing refers to and nothing will; gives their names.

    Args:
        storage: The place; only its owner may do this.

    Raises:
        CorruptCheckpointError: A checkpoint can't be read, so that its files are not known.
    """
    epochs = completed_epochs(storage)
    if not epochs:
        return []
    needed = {name for epoch in epochs for name in read_metadata(storage, epoch).all_files}
    gone = [
        f"{FOLDER}/{folder}/{name}"
        for folder in storage.children(FOLDER)
        if folder.isdecimal() and int(folder) <= epochs[-1]
        for name in storage.children(f"{FOLDER}/{folder}")
        if f"{FOLDER}/{folder}/{name}" not in needed
    ]
    for name in gone:
        storage.delete(name)
    return gone
