"""What collecting sinks of an unbounded job give, on its way from the job's thread to the program's."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.runtime.shipping.outcome import JobOutcome

MOST_WAITING = 16
"""How many epochs' records wait for a sink; the job waits when nobody reads."""

_LOOK_EVERY_S = 0.1


class CollectedRecords:
    """The records of finished epochs, by the uid of their sink."""

    def __init__(self) -> None:
        self._waiting: dict[str, queue.Queue[list[Any]]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def put(self, outcome: JobOutcome) -> None:
        """Hands over an epoch's records; waits for readers that are far behind, until the job ends."""
        uids = [where for kind, where in outcome.records if kind == "collect"]
        for uid in uids:
            records = list(outcome.collected(uid))
            waiting = self._of(uid)
            while not self._ended.is_set():
                try:
                    waiting.put(records, timeout=_LOOK_EVERY_S)
                except queue.Full:
                    continue
                break

    def end(self) -> None:
        """Says that no epoch follows."""
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
            return self._waiting.setdefault(uid, queue.Queue(MOST_WAITING))
