"""The queue that keeps everything in order."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.async_wait.element_queue import QueuedMark, QueuedRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class OrderedQueue:
    """An element leaves when all before it have left: same input, same output.

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
        """See ElementQueue; every mark is one."""
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
