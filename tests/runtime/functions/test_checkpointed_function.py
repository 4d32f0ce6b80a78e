from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.source_sink_functions import SinkFunction
from opchain.runtime.functions.state import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)


class Counting(SinkFunction[int], CheckpointedFunction, CheckpointListener):
    def __init__(self) -> None:
        self.count = 0
        self.complete: list[int] = []

    def invoke(self, value: int, context: Any) -> None:
        self.count += value

    def snapshot_state(self, context: Any) -> None:
        self.snapshot = self.count

    def initialize_state(self, context: Any) -> None:
        self.count = 10

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.complete.append(checkpoint_id)


def test_checkpointed_function_and_listener_are_mixins() -> None:
    function = Counting()
    function.initialize_state(None)
    function.invoke(5, None)
    function.snapshot_state(None)
    function.notify_checkpoint_complete(1)
    function.notify_checkpoint_aborted(2)
    assert (function.snapshot, function.complete) == (15, [1])


@pytest.mark.parametrize(
    ("contract", "methods"),
    [
        (CheckpointedFunction, {"snapshot_state", "initialize_state"}),
        (CheckpointListener, {"notify_checkpoint_complete"}),
        (FunctionSnapshotContext, {"get_checkpoint_id", "get_checkpoint_timestamp"}),
        (
            FunctionInitializationContext,
            {
                "is_restored",
                "get_restored_checkpoint_id",
                "get_operator_state_store",
                "get_keyed_state_store",
            },
        ),
    ],
)
def test_checkpointed_function_and_listener_have_their_abstract_methods(
    contract: Any, methods: set[str]
) -> None:
    assert contract.__abstractmethods__ == methods
