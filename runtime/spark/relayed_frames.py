"""What relayed sinks sent, among all that leaves the last stage of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.spark.exchange import from_frame
from opchain.runtime.task.vertex_program import RELAYED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.task.buffer import Buffer


def relayed_batches(buffers: Iterable[Buffer | bytes]) -> Iterator[bytes]:
    """The batches of the one sink that a DataFrame has; nobody is there to hear of reports."""
    for item in buffers:
        if not isinstance(item, bytes) and item.target == RELAYED:
            yield item.payload


class FramesForDriver:
    """Leaves out the batches."""

    def __call__(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """The frames that the driver reads."""
        return (frame for frame in frames if from_frame(frame).target != RELAYED)


class BatchesOfSink:
    """The batches of one sink: operator `operator` of the tasks `tasks`."""

    def __init__(self, tasks: range, operator: int) -> None:
        self.tasks = tasks
        self.operator = operator

    def __call__(self, frames: Iterable[bytes]) -> Iterator[bytes]:
        """Their bytes."""
        for frame in frames:
            target, operator, task, _, batch = from_frame(frame)
            if target == RELAYED and operator == self.operator and task in self.tasks:
                yield bytes(batch)
