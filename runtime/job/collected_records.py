"""The records of collecting sinks, read while an unbounded job runs."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WAITING = 16
"""How many lists of records wait for a reader: of epochs, or of batches. The job waits when nobody reads."""

NO_LIMIT = 0
"""For as many lists as there are."""

_LOOK_EVERY_S = 0.1


class CollectedRecords:
    """Records that wait for the program that drew the job, by the uid of their sink; `most_waiting` may be NO_LIMIT."""

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self._waiting: dict[str, queue.Queue[list[Any]]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def put(self, uid: str, records: list[Any]) -> None:
        """Hands over the records of a sink; waits for a reader that is far behind, until the job ends."""
        waiting = self._of(uid)
        while not self._ended.is_set():
            try:
                waiting.put(records, timeout=_LOOK_EVERY_S)
            except queue.Full:
                continue
            break

    def end(self) -> None:
        """Says that nothing follows."""
        self._ended.set()

    def read(self, uid: str) -> Iterator[Any]:
        """The records of a sink as they come, until the job has ended."""
        waiting = self._of(uid)
        while True:
            has_ended = self._ended.is_set()
            try:
                records = waiting.get(timeout=_LOOK_EVERY_S)
            except queue.Empty:
                if has_ended:
                    return
                continue
            yield from records

    def _of(self, uid: str) -> queue.Queue[list[Any]]:
        with self._lock:
            return self._waiting.setdefault(uid, queue.Queue(self._most_waiting))
