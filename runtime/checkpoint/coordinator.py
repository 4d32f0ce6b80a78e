"""Coordinates checkpoints on the driver: begin, acknowledgements of all tasks, completion in one step, retention.

    coordinator = CheckpointCoordinator.open(storage, job_name, run_id)   # refuses a second run
    latest = coordinator.latest()                                         # start from here
    pending = coordinator.begin(checkpoint_id, tasks)
    pending.acknowledge(TaskMetadata(task, ...))                          # once per task
    metadata = coordinator.complete(pending, operators, sources=..., plan=...)   # one publish
    coordinator.close()

A checkpoint is complete as soon as its metadata is published. Until then, the last complete checkpoint is not changed,
even if processes are killed. Sinks commit after the checkpoint is complete. If the run dies before they do, the next
run commits: it starts with `latest`, which contains the committables.

A state file may belong to many checkpoints. It is deleted with the last checkpoint that refers to it. Failed attempts
and failed epochs leave files without a checkpoint. They are deleted once their epoch or a later one is complete: a
task only builds on the files of the last epoch that it wrote, and the checkpoint refers to those files.

The id of the directory (its *lineage*) is a file. Sinks mark staged output with it until they commit. Only one run at a
time holds the directory's lease. So staged output that has the mark, and is not in the last checkpoint, belongs to no
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
    completed_checkpoints,
    fence_document,
    fence_next_epoch,
    file_names,
    last_file,
    name_to_publish,
)
from opchain.runtime.checkpoint.metadata import (
    NO_INPUT,
    CheckpointMetadata,
    Committable,
    EpochInput,
    OperatorMetadata,
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
    CheckpointFailedError,
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
    """A checkpoint that is not complete yet. CheckpointCoordinator.begin creates it.

    Attributes:
        checkpoint_id: Its number.
        timestamp_ms: When it began.
        acknowledged: The acknowledgements so far, by task.
    """

    def __init__(self, checkpoint_id: int, timestamp_ms: int, tasks: Iterable[int]) -> None:
        self.checkpoint_id = checkpoint_id
        self.timestamp_ms = timestamp_ms
        self.acknowledged: dict[int, TaskMetadata] = {}
        self._tasks = dict.fromkeys(sorted(tasks))

    def acknowledge(self, acknowledgement: TaskMetadata) -> None:
        """Adds the acknowledgement of a task, which names its state files.

        Raises:
            CheckpointError: The task does not belong to this checkpoint, has acknowledged before, or acknowledges
                another epoch.
        """
        task = acknowledgement.task
        if task not in self._tasks:
            raise CheckpointError(
                f"task {task} acknowledges checkpoint {self.checkpoint_id}, which does not include that task"
            )
        if task in self.acknowledged:
            raise CheckpointError(
                f"task {task} acknowledges checkpoint {self.checkpoint_id} a second time"
            )
        if acknowledgement.state.checkpoint_id != self.checkpoint_id:
            raise CheckpointError(
                f"task {task} acknowledges checkpoint {self.checkpoint_id} with the state of epoch "
                f"{acknowledgement.state.checkpoint_id}"
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
                f"checkpoint {self.checkpoint_id} can't be completed: of {len(self._tasks)} tasks, {len(missing)} "
                f"have not acknowledged ({shown}{f' and {more} more' if more > 0 else ''})"
            )
        return [self.acknowledged[task] for task in self._tasks]


_LOG = logging.getLogger(__name__)

_COMPLETED_BETWEEN_SWEEPS = 100


class DeclineReason(Enum):
    """Why a checkpoint failed. The names are those of Flink's CheckpointFailureReason."""

    CHECKPOINT_EXPIRED = "the epoch took longer than execution.checkpointing.timeout"
    IO_EXCEPTION = "a task could not write its state"
    FINALIZE_CHECKPOINT_FAILURE = "the metadata could not be published"
    TASK_FAILURE = "a task failed"


class CheckpointCoordinator:
    """The checkpoints of one run; see the module. Only one thread may use it.

    Attributes:
        lease: The run's lease of the checkpoint directory.
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
        """Takes the lease of a directory for a run, and fences all earlier runs; see epoch_files.py.

        Args:
            storage: The checkpoint directory.
            job_name: For messages and the metadata.
            run_id: The unique id of this run.
            retained: How many completed checkpoints are kept, at least 1.
            tolerable_failures: How many checkpoints in a row may fail.
            lease_ms: How long a run on another machine counts as alive after its last heartbeat.
            keeps_alive: Whether a thread sends heartbeats.
            now_ms: The clock; by default the machine's.

        Raises:
            CheckpointInUseError: Another run holds the directory. The message says which run, and since when.
        """
        if retained < 1:
            raise ValueError(
                f"the number of retained checkpoints is {retained}, but must be at least 1"
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
        """The last completed checkpoint, or None; see `latest_checkpoint`."""
        return latest_checkpoint(self._storage)

    def begin(self, checkpoint_id: int, tasks: Iterable[int]) -> PendingCheckpoint:
        """Begins a checkpoint that these tasks must acknowledge.

        Raises:
            CheckpointInUseError: Another run has taken over the directory.
            CheckpointError: The epoch is not after the last completed one, or another is pending.
        """
        self.lease.require()
        if self._pending is not None:
            raise CheckpointError(
                f"checkpoint {checkpoint_id} cannot start while checkpoint {self._pending.checkpoint_id} is "
                f"pending; complete or abort it first"
            )
        completed = self._retained_checkpoints()
        if completed and checkpoint_id <= completed[-1].checkpoint_id:
            raise CheckpointError(
                f"checkpoint {checkpoint_id} cannot start: checkpoint {completed[-1].checkpoint_id} is already "
                f"complete"
            )
        self._pending = PendingCheckpoint(checkpoint_id, self._now_ms(), tasks)
        return self._pending

    def complete(
        self,
        pending: PendingCheckpoint,
        operators: Sequence[OperatorMetadata],
        *,
        epoch_input: EpochInput = NO_INPUT,
        committables: Sequence[Committable] = (),
        plan: Mapping[str, Any] | None = None,
    ) -> CheckpointMetadata:
        """Completes a checkpoint: publishes its metadata, and deletes old checkpoints.

        Raises:
            CheckpointInUseError: Another run has completed this epoch, or has taken over the directory.
            CheckpointError: Acknowledgements are missing, the checkpoint is not pending, or an earlier attempt
                completed although the storage reported an error.
        """
        self._require_pending(pending)
        metadata = CheckpointMetadata(
            checkpoint_id=pending.checkpoint_id,
            timestamp_ms=pending.timestamp_ms,
            job_name=self.lease.run.job_name,
            run_id=self.lease.run.run_id,
            operators=tuple(operators),
            tasks=tuple(pending.require_all()),
            input=epoch_input,
            committables=tuple(committables),
            plan=None if plan is None else dict(plan),
        )
        self._publish(metadata)
        self._pending, self._failures = None, 0
        self._retain(metadata)
        return metadata

    def abort(self, pending: PendingCheckpoint, reason: DeclineReason, details: str) -> None:
        """Aborts a checkpoint. Its files stay until a later checkpoint is complete, which may refer to them.

        Args:
            pending: The checkpoint.
            reason: Why, for the message.
            details: What failed.

        Raises:
            CheckpointFailedError: More checkpoints in a row have failed than are tolerable.
        """
        self._require_pending(pending)
        self._pending = None
        self._failures += 1
        if self._failures > self._tolerable_failures:
            raise CheckpointFailedError(
                f"checkpoint {pending.checkpoint_id} failed ({reason.name}): {details}; {self._failures} in a row, "
                f"tolerable: {self._tolerable_failures}"
            )

    def sweep(self) -> list[str]:
        """Removes state files that no checkpoint will ever refer to. Returns their names."""
        self.lease.require()
        return sweep(self._storage)

    def discard_after(self, checkpoint_id: int) -> list[int]:
        """Drops the completed checkpoints after an epoch, and returns their epochs. 0 drops all.

        It is for a run that resumes from an earlier checkpoint because the last one is damaged, and repeats these
        epochs. It does not read the dropped checkpoints.
        """
        self.lease.require()
        dropped = [found for found in completed_checkpoints(self._storage) if found > checkpoint_id]
        # The files are looked up before the lease is checked. If another run takes over after the check, a late write
        # then replaces the damaged file, and not the new checkpoint of the other run.
        files = [last_file(self._storage, found) for found in reversed(dropped)]
        self.lease.require()
        for file in files:
            if file is not None:
                # The fence also makes late writes and deletions of an earlier run harmless.
                self._storage.write(file.name, fence_document(self.lease.run.number))
        self._completed = None
        return dropped

    def close(self) -> None:
        """Releases the directory for other runs."""
        self.lease.close()

    def _require_pending(self, pending: PendingCheckpoint) -> None:
        if pending is not self._pending:
            raise CheckpointError(
                f"checkpoint {pending.checkpoint_id} is not the pending checkpoint"
            )

    def _publish(self, metadata: CheckpointMetadata) -> None:
        storage, checkpoint_id = self._storage, metadata.checkpoint_id
        self.lease.require()
        data = encode(metadata, storage.key)
        self.lease.is_settled = False  # until the storage has answered
        while True:
            name = name_to_publish(storage, checkpoint_id, self.lease.run.number)
            try:
                storage.publish(name, data)
            except FileExistsError:
                last = last_file(storage, checkpoint_id)
                if last is not None and (last.fenced_by or math.inf) < self.lease.run.number:
                    continue  # the fence of a run that this one has replaced came late
                self.lease.is_settled = True
                self._require_own(metadata)
            break
        self.lease.is_settled = True
        self._require_still(checkpoint_id, name)

    def _require_own(self, metadata: CheckpointMetadata) -> None:
        """Checks that the existing file under the name is the checkpoint that this run has just published."""
        storage, checkpoint_id = self._storage, metadata.checkpoint_id
        last = last_file(storage, checkpoint_id)
        if last is None or last.fenced_by is not None:
            self.lease.require()
            by = "a later run" if last is None else f"run number {last.fenced_by}"
            raise CheckpointInUseError(
                f"checkpoint {checkpoint_id} of {storage.url} can't be completed: {by} has taken over from this run, "
                f"{self.lease.run}, which must stop"
            )
        other = decode(last.data, storage.full_name(last.name), storage.key)
        if other != metadata and other.run_id == metadata.run_id:
            raise CheckpointError(
                f"checkpoint {checkpoint_id} of {storage.url} is complete, although its storage reported "
                f"an error: start the job again to resume from this checkpoint"
            )
        if other != metadata:
            raise CheckpointInUseError(
                f"checkpoint {checkpoint_id} of {storage.url} was completed by run "
                f"{other.run_id} of '{other.job_name}'; this is run {metadata.run_id}, which must stop"
            )
        # Equal: an earlier attempt of this run succeeded, but its answer was lost.

    def _require_still(self, checkpoint_id: int, name: str) -> None:
        """Checks after a publish that no run has taken over.

        If a run took over, completed this epoch and later ones, and dropped this epoch, its fence is gone and the name
        was free. A run registers itself before it looks for the last checkpoint. So either this check finds that run,
        or that run has found this checkpoint.

        Raises:
            CheckpointInUseError: Another run holds the directory. Sinks must not commit.
        """
        try:
            self.lease.require()
        except CheckpointInUseError:
            if max(completed_checkpoints(self._storage), default=0) > checkpoint_id:
                self._storage.delete(name)  # no run will resume from it
            raise

    def _retained_checkpoints(self) -> list[CheckpointMetadata]:
        if self._completed is None:
            numbers = completed_checkpoints(self._storage)
            earlier = filter(None, map(self._readable, numbers[:-1]))
            last = (read_metadata(self._storage, number) for number in numbers[-1:])
            self._completed = [*earlier, *last]
        return self._completed

    def _readable(self, checkpoint_id: int) -> CheckpointMetadata | None:
        """The metadata of a checkpoint before the last. A damaged checkpoint is deleted, and None is returned."""
        try:
            return read_metadata(self._storage, checkpoint_id)
        except CorruptCheckpointError as error:
            _LOG.warning(
                "checkpoint %d is discarded, because a later one is complete: %s",
                checkpoint_id,
                error,
            )
            for name in file_names(self._storage, checkpoint_id):
                self._storage.delete(name)
            return None

    def _retain(self, metadata: CheckpointMetadata) -> None:
        """Drops checkpoints beyond the retained number. A later sweep removes files that can't be deleted now.

        Nothing is swept while an earlier checkpoint is damaged. The next run deletes that checkpoint.
        """
        completed = self._retained_checkpoints()
        completed.append(metadata)
        self._completed_count += 1
        try:
            while len(completed) > self._retained:
                drop_checkpoint(self._storage, completed.pop(0), completed)
            if self._completed_count % _COMPLETED_BETWEEN_SWEEPS == 0:
                self.sweep()
        except (OSError, CorruptCheckpointError) as error:
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
    """Reads the id, which becomes a part of file names.

    Raises:
        CorruptCheckpointError: The file does not contain an id.
    """
    data = storage.read(_FILE)
    if _ID.fullmatch(data) is None:
        raise CorruptCheckpointError(
            storage.full_name(_FILE),
            f"holds {short_repr(data)}, but 32 hexadecimal digits are expected: restore the file "
            f"from a backup. Without it, staged output that earlier runs wrote and did not "
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
    for name in file_names(storage, dropped.checkpoint_id):  # first the fences, then its metadata
        storage.delete(name)
    gone = [name for name in dropped.all_files if name not in needed]
    for name in gone:
        storage.delete(name)
    return gone


def sweep(storage: CheckpointStorage) -> list[str]:
    """Removes state files that no checkpoint will ever refer to. Returns their names.

    Args:
        storage: The checkpoint directory. The caller holds its lease.

    Raises:
        CorruptCheckpointError: A checkpoint can't be read, so its files are not known.
    """
    numbers = completed_checkpoints(storage)
    if not numbers:
        return []
    needed = {name for number in numbers for name in read_metadata(storage, number).all_files}
    gone = [
        f"{FOLDER}/{folder}/{name}"
        for folder in storage.children(FOLDER)
        if folder.isdecimal() and int(folder) <= numbers[-1]
        for name in storage.children(f"{FOLDER}/{folder}")
        if f"{FOLDER}/{folder}/{name}" not in needed
    ]
    for name in gone:
        storage.delete(name)
    return gone
