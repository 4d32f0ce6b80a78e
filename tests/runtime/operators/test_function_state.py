"""CheckpointedFunction: its states, is_restored, and the id of the checkpoint."""

from __future__ import annotations

from typing import Any

import pytest

from opchain.datastream import MapFunction
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from opchain.runtime.functions.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from opchain.testing import KeyedOneInputOperatorHarness, ManualClock, OneInputOperatorHarness

BUFFER: ListStateDescriptor[Any] = ListStateDescriptor("buffer")


class Buffers(MapFunction[Any, Any], CheckpointedFunction):
    """Keeps its records in memory, and in a list state when a checkpoint is taken."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.events: list[Any] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.events.append((context.is_restored(), context.get_restored_checkpoint_id()))
        self.state = context.get_operator_state_store().get_list_state(BUFFER)
        self.seen = list(self.state.get())

    def open(self, runtime_context: Any) -> None:
        self.events.append("open")

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.events.append((context.get_checkpoint_id(), context.get_checkpoint_timestamp()))
        self.state.update(self.seen)

    def map(self, value: Any) -> Any:
        self.seen.append(value)
        return list(self.seen)


def test_initialize_state_is_called_before_open() -> None:
    function = Buffers()
    with OneInputOperatorHarness(function):
        assert function.events == [(False, None), "open"]


def test_state_written_by_snapshot_state_is_restored() -> None:
    function = Buffers()
    with OneInputOperatorHarness(function, clock=ManualClock(77)) as before:
        before.process_element(1)
        snapshot = before.snapshot(checkpoint_id=5)
        before.process_element(2)
    assert function.events[-1] == (5, 77)
    restored = Buffers()
    with OneInputOperatorHarness(restored, snapshots=[snapshot]) as harness:
        assert restored.events == [(True, 1), "open"]
        harness.process_element(3)
        assert harness.values() == [[1, 3]]


@pytest.mark.parametrize("is_keyed", [True, False])
def test_initialize_state_can_create_keyed_state_on_a_keyed_stream(is_keyed: bool) -> None:
    class Keyed(Buffers):
        def initialize_state(self, context: FunctionInitializationContext) -> None:
            self.count = context.get_keyed_state_store().get_state(ValueStateDescriptor("count"))

        def snapshot_state(self, context: FunctionSnapshotContext) -> None:
            pass

        def map(self, value: Any) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            return self.count.value()

    if not is_keyed:
        with pytest.raises(StateError, match="needs key_by"):
            OneInputOperatorHarness(Keyed()).open()
        return
    with KeyedOneInputOperatorHarness(Keyed(), str) as harness:
        harness.process_elements([("a", None), ("b", None), ("a", None)])
        assert harness.values() == [1, 1, 2]
