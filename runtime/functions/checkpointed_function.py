"""Functions that take part in checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opchain.runtime.state.state_stores import KeyedStateStore, OperatorStateStore


class FunctionSnapshotContext(ABC):
    """The checkpoint that is being taken."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Its number: one more than the one before."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When it was triggered, in milliseconds."""


class FunctionInitializationContext(ABC):
    """Where a function finds its state when it starts, fresh or restored."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the job starts from a checkpoint or savepoint."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The number of that checkpoint, or None on a fresh start."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the subtask, split or united when the parallelism changes."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """State per key; its states can be made here, and used once there is a current key."""


class CheckpointedFunction(ABC):
    """Mixed into any Function: keeps state of its own across failures and restarts.

    Flink has it in Java only.
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Puts what the object holds in memory into the states made by `initialize_state`."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Makes the states, and reads them where `context.is_restored()`; runs before `open`."""


class CheckpointListener(ABC):
    """Mixed into any Function: hears how checkpoints end. Flink has it in Java only."""

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete, and so is everything before it; may be skipped or repeated."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint failed; a later one covers what it would have."""
