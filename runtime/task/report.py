"""What a task tells the driver, on the data path: so it arrives once, from the attempt that counts.

Every task ends with one TaskReport. It travels like any buffer, to the target DRIVER, and Spark's
retries decide which attempt's report the driver sees: no accumulators, nothing counted twice.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.task.buffer import Buffer
from opchain.runtime.task.record_pickle import dump_records
from opchain.runtime.task.vertex_program import DRIVER
from opchain.runtime.task.wire import PayloadKind, frame, unframe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.metrics.task_metrics import TaskMetrics

ITEMS_PER_BUFFER = 1024


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The last word of a task: its numbers."""

    task: int
    attempt_id: str
    metrics: TaskMetrics


class DriverChannel:
    """The sending end of a task's way to the driver: acknowledgements first, the report last."""

    def __init__(self, task: int, emit: Callable[[Buffer], None]) -> None:
        self._task = task
        self._emit = emit
        self._sequence = 0
        self._items: list[Any] = []
        self._size = 0

    def acknowledge(self, item: Any, size: int = 1) -> None:
        """Sends a picklable item: a committable, some collected records, a state handle.

        `size` says how many records it stands for: buffers hold about as many.
        """
        self._items.append(item)
        self._size += size
        if self._size >= ITEMS_PER_BUFFER:
            self.flush()

    def flush(self) -> None:
        """Sends what is waiting."""
        if self._items:
            payload = frame(PayloadKind.REPORT, dump_records(self._items))
            self._emit(Buffer(DRIVER, 0, self._task, self._sequence, payload))
            self._sequence += 1
            self._items = []
            self._size = 0

    def finish(self, report: TaskReport) -> None:
        """Sends the report: after it nothing follows."""
        self._items.append(report)
        self.flush()


def read_driver_buffers(buffers: Iterable[Buffer]) -> dict[int, list[Any]]:
    """The items of each task in the order in which it sent them, by task number."""
    items: dict[int, list[Any]] = {}
    for buffer in sorted(buffers, key=lambda item: (item.channel, item.sequence)):
        body = unframe(PayloadKind.REPORT, buffer.payload)
        items.setdefault(buffer.channel, []).extend(pickle.loads(body))
    return items
