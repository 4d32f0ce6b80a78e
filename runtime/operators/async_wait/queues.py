"""The queues of an async wait operator: ordered, or unordered between two watermarks.

Flink: `StreamElementQueue` and its entries. Everything here happens in the task's thread.
"""

from __future__ import annotations

from collections import deque
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
        """The segment of an unordered queue that contains the record."""

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
    """A watermark, a status or a latency marker, which needs no results. Flink: `WatermarkQueueEntry`."""

    __slots__ = ("pass_on",)

    is_done = True

    def __init__(self, pass_on: Callable[[], None]) -> None:
        self.pass_on = pass_on

    def emit(self, _collect: Collect) -> None:
        """Emits the mark."""
        self.pass_on()


class ElementQueue(Protocol):
    """Elements in the order of arrival. The queue decides which element may leave next.

    `len` counts records and marks that have not left.
    """

    def put_record(self, value: Any, timestamp: int | None) -> QueuedRecord:
        """Adds a record. Returns the entry to pass to `complete` with the results."""

    def put_mark(self, pass_on: Callable[[], None], *, is_boundary: bool) -> None:
        """Adds a mark. If it is a boundary, no record overtakes it, and it overtakes no record."""

    def complete(self, record: QueuedRecord, results: Iterable[Any]) -> None:
        """Sets the results of a record. Called once per record."""

    def take(self) -> QueuedRecord | QueuedMark | None:
        """Removes the next element that may leave; None if there is none."""

    def __len__(self) -> int:
        """How many elements are in it."""


class OrderedQueue:
    """An element leaves after all elements before it, so the same input gives the same output.

    Flink: `OrderedStreamElementQueue`.
    """

    def __init__(self) -> None:
        self._elements: deque[QueuedRecord | QueuedMark] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def put_record(self, value: Any, timestamp: int | None) -> QueuedRecord:
        """See ElementQueue."""
        record = QueuedRecord(value, timestamp)
        self._elements.append(record)
        return record

    def put_mark(self, pass_on: Callable[[], None], *, is_boundary: bool) -> None:
        """See ElementQueue. Every mark is a boundary here."""
        del is_boundary
        self._elements.append(QueuedMark(pass_on))

    def complete(self, record: QueuedRecord, results: Iterable[Any]) -> None:
        """See ElementQueue."""
        assert not record.is_done
        record.results = results

    def take(self) -> QueuedRecord | QueuedMark | None:
        """See ElementQueue."""
        elements = self._elements
        return elements.popleft() if elements and elements[0].is_done else None


class _Segment:
    """The records between two boundaries, or one boundary."""

    __slots__ = ("done", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self.done: deque[QueuedRecord | QueuedMark] = deque()

    @property
    def is_empty(self) -> bool:
        return not self.waiting and not self.done


class UnorderedQueue:
    """Between two watermarks, records leave in the order in which their calls end.

    This order may differ from run to run. But the same records leave between two watermarks, so event time downstream
    is the same.

    Flink: `UnorderedStreamElementQueue`.
    """

    def __init__(self) -> None:
        self._segments: deque[_Segment] = deque([_Segment()])
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put_record(self, value: Any, timestamp: int | None) -> QueuedRecord:
        """See ElementQueue."""
        record = QueuedRecord(value, timestamp)
        record.segment = self._segments[-1]
        record.segment.waiting += 1
        self._size += 1
        return record

    def put_mark(self, pass_on: Callable[[], None], *, is_boundary: bool) -> None:
        """See ElementQueue. A mark that is not a boundary overtakes waiting records."""
        if is_boundary and not self._segments[-1].is_empty:
            self._segments.append(_Segment())
        self._segments[-1].done.append(QueuedMark(pass_on))
        self._size += 1
        if is_boundary:
            self._segments.append(_Segment())

    def complete(self, record: QueuedRecord, results: Iterable[Any]) -> None:
        """See ElementQueue."""
        assert not record.is_done
        record.results = results
        record.segment.waiting -= 1
        record.segment.done.append(record)

    def take(self) -> QueuedRecord | QueuedMark | None:
        """See ElementQueue."""
        segments = self._segments
        first = segments[0]
        if not first.done:
            return None
        element = first.done.popleft()
        self._size -= 1
        if first.is_empty and len(segments) > 1:
            segments.popleft()
        return element
