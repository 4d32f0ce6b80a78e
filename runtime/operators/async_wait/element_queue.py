"""What waits in an async wait operator: records whose calls are under way, and marks between them.

Flink: `StreamElementQueue` and its entries. Everything here happens in the task's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.operators.operator import Collect


class QueuedRecord:
    """A record, and its results once they are known. Flink: `StreamRecordQueueEntry`."""

    __slots__ = ("results", "segment", "timestamp", "value")

    def __init__(self, value: Any, timestamp: int | None) -> None:
        self.value = value
        self.timestamp = timestamp
        self.results: Iterable[Any] | None = None
        self.segment: Any = None
        """Where an unordered queue keeps it."""

    @property
    def is_done(self) -> bool:
        """Whether the results are known."""
        return self.results is not None

    def emit(self, collect: Collect) -> None:
        """Emits the results, each with the record's timestamp."""
        assert self.results is not None
        timestamp = self.timestamp
        for result in self.results:
            collect(result, timestamp)


class QueuedMark:
    """A watermark, a status or a latency marker: complete from the start. Flink: `WatermarkQueueEntry`."""

    __slots__ = ("pass_on",)

    is_done = True

    def __init__(self, pass_on: Callable[[], None]) -> None:
        self.pass_on = pass_on

    def emit(self, _collect: Collect) -> None:
        """Passes it on."""
        self.pass_on()


class ElementQueue(Protocol):
    """Elements in the order in which they came; says which of them may leave.

    Records and marks count alike: `len` is how many have not left.
    """

    def put_record(self, value: Any, timestamp: int | None) -> QueuedRecord:
        """Adds a record; to be given to `complete` when its results are there."""

    def put_mark(self, pass_on: Callable[[], None], *, is_boundary: bool) -> None:
        """Adds a mark; no record passes a boundary, in either direction."""

    def complete(self, record: QueuedRecord, results: Iterable[Any]) -> None:
        """Takes the results of a record, once."""

    def take(self) -> QueuedRecord | QueuedMark | None:
        """Removes the next element that may leave; None if there is none."""

    def __len__(self) -> int:
        """How many elements are in it."""
