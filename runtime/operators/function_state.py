"""What a CheckpointedFunction gets: where its state is, and which checkpoint is being taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.runtime.functions.checkpointed_function import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
)

if TYPE_CHECKING:
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.state.state_stores import KeyedStateStore, OperatorStateStore


class InitializationContext(FunctionInitializationContext):
    """An operator's states for its function. Flink: `StateInitializationContextImpl`."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def is_restored(self) -> bool:
        """Whether a snapshot was restored."""
        return self._context.restored_checkpoint_id is not None

    def get_restored_checkpoint_id(self) -> int | None:
        """Its number."""
        return self._context.restored_checkpoint_id

    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the subtask."""
        store: OperatorStateStore = self._context.operator_state
        return store

    def get_keyed_state_store(self) -> KeyedStateStore:
        """State per key; on a stream without key its getters raise StateError."""
        return self._context.runtime_context


@dataclass(frozen=True, slots=True)
class SnapshotContext(FunctionSnapshotContext):
    """A checkpoint. Flink: `StateSnapshotContextSynchronousImpl`."""

    checkpoint_id: int
    timestamp_ms: int

    def get_checkpoint_id(self) -> int:
        """Its number."""
        return self.checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        """When it was triggered."""
        return self.timestamp_ms
