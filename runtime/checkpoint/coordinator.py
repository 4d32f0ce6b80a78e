"""The life of checkpoints on the driver: begun, acknowledged by every task, completed in one step, retained.

    coordinator = CheckpointCoordinator.open(storage, job_name, run_id)   # refuses a second run
    latest = coordinator.latest()                                         # start from here
    pending = coordinator.begin(epoch, tasks)
    pending.acknowledge(Acknowledgement(task, ...))                       # once per task
    metadata = coordinator.complete(pending, operators, sources, plan)     # one publish
    coordinator.close()

Flink: `CheckpointCoordinator`, `PendingCheckpoint`, `CompletedCheckpointStore`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.checkpoint.metadata import (
        CheckpointMetadata,
        Committable,
        OperatorMetadata,
        SourcePosition,
    )
    from opchain.runtime.checkpoint.state_files import TaskState
    from opchain.runtime.checkpoint.storage import CheckpointStorage


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What a task says at the end of an epoch: where its state is, and what its sinks prepared.

    `rest` is what the task wants back and nobody else looks into. `state_bytes` is what it wrote in this
    epoch, `duration_ms` how long that took.
    """

    task: int
    vertex_id: str
    subtask: int
    state: TaskState
    rest: bytes = b""
    committables: tuple[Committable, ...] = ()
    state_bytes: int = 0
    duration_ms: float = 0.0


class CheckpointObserver(Protocol):
    """Hears how checkpoints end. Flink: `CheckpointListener` of the coordinator."""

    def on_complete(self, metadata: CheckpointMetadata) -> None:
        """A checkpoint is complete."""

    def on_abort(self, epoch: int, reason: str) -> None:
        """A checkpoint will never be complete."""


class PendingCheckpoint:
    """A checkpoint of which acknowledgements are missing."""

    epoch: int
    timestamp_ms: int

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """Takes a task's acknowledgement.

        Raises:
            CheckpointError: The task is none of this checkpoint's, or has acknowledged before.
        """
        raise NotImplementedError

    @property
    def missing(self) -> Sequence[int]:
        """The tasks that have not acknowledged."""
        raise NotImplementedError


class CheckpointCoordinator:
    """The checkpoints of one run; see the module. Used by one thread."""

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
        observers: Iterable[CheckpointObserver] = (),
        now_ms: Any = None,
    ) -> CheckpointCoordinator:
        """Takes the place for a run.

        Args:
            storage: The place.
            job_name: For messages and the metadata.
            run_id: What tells this run from all others.
            retained: How many completed checkpoints are kept, at least 1.
            tolerable_failures: How many checkpoints in a row may fail.
            lease_ms: How long a run of which nothing is heard counts as alive.
            observers: Who hears how checkpoints end.
            now_ms: The clock; the machine's if not given.

        Raises:
            CheckpointInUseError: Another run has the place: the message says which, and since when.
        """
        raise NotImplementedError

    def latest(self) -> CheckpointMetadata | None:
        """The last completed checkpoint, None where there is none.

        Raises:
            CorruptCheckpointError: Its metadata can't be read; the message names the one before.
        """
        raise NotImplementedError

    def begin(self, epoch: int, tasks: Iterable[int]) -> PendingCheckpoint:
        """Begins a checkpoint that these tasks are to acknowledge.

        Raises:
            CheckpointInUseError: Another run has taken the place over.
            CheckpointError: The epoch is not after the last completed one, or another is pending.
        """
        raise NotImplementedError

    def complete(
        self,
        pending: PendingCheckpoint,
        operators: Sequence[OperatorMetadata],
        *,
        sources: Sequence[SourcePosition] = (),
        plan: Mapping[str, Any] | None = None,
    ) -> CheckpointMetadata:
        """Makes a checkpoint complete: its metadata is published, observers hear of it, old ones go.

        Raises:
            CheckpointInUseError: Another run has completed this epoch, or taken the place over.
            CheckpointError: Acknowledgements are missing.
        """
        raise NotImplementedError

    def abort(self, pending: PendingCheckpoint, reason: str) -> None:
        """Gives a checkpoint up. Its files stay until a later one is complete: chains may go on from them.

        Raises:
            CheckpointError: More failed in a row than are tolerable.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Leaves the place to others."""
        raise NotImplementedError
