"""The queue that lets results out as they come, but none past a watermark."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.async_wait.element_queue import QueuedMark, QueuedRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


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
    """Between two watermarks records leave in the order in which their calls end.

    Which order that is depends on the outside world, and may differ when a job is run again. What lies
    between two watermarks does not, so that event time downstream sees the same.

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
        """See ElementQueue; a mark that is no boundary passes the records that are waiting."""
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
