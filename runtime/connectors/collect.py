"""The sink behind `execute_and_collect`: records travel to the driver with the acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.sink import Sink, SinkWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.functions.function import RuntimeContext


class CollectSink(Sink[Any]):
    """Hands records to the program that drew the job, each exactly once.

    Args:
        uid: Tells the collecting sinks of a job apart; that of the sink's transformation.
    """

    reads_timestamps = False
    changes_records = False

    def __init__(self, uid: str) -> None:
        self.uid = uid

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        """A writer that acknowledges each record to the driver."""
        return _CollectWriter(self.uid, context.acknowledge)  # type: ignore[attr-defined]


class _CollectWriter(SinkWriter[Any]):
    def __init__(self, uid: str, acknowledge: Callable[[Any], None]) -> None:
        self._uid = uid
        self._acknowledge = acknowledge

    def write(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        self._acknowledge(("collect", self._uid, value))

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        acknowledge = self._acknowledge
        for value in values:
            acknowledge(("collect", self._uid, value))
        del timestamps
