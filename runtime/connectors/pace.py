"""How fast a source may go, and how much of it an epoch may have."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_WAIT_S = 0.1
"""How long nobody is told whether something is due: meanwhile the task's mail waits."""


class Pace:
    """Says how many records are due, and waits a little where none is.

    The clock decides when records come, and never which ones.

    Args:
        per_second: Records per second on average, more than 0.
        clock: Seconds from any origin.
        sleep: Waits a number of seconds.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._per_second = per_second
        self._clock = clock
        self._sleep = sleep
        self._began = clock()
        self._taken = 0

    def take(self, most: int) -> int:
        """How many records may be read now, at most `most`; 0 where none has come due in a while."""
        due = self._due()
        if due < 1:
            # For one record where they are rare, else for those of a whole wait at once.
            wanted = max(1.0, min(most, self._per_second * LONGEST_WAIT_S))
            wait_s = (self._taken + wanted) / self._per_second - (self._clock() - self._began)
            self._sleep(max(0.0, min(wait_s, LONGEST_WAIT_S)))
            due = self._due()
        taken = max(0, min(due, most))
        self._taken += taken
        return taken

    def _due(self) -> int:
        return int((self._clock() - self._began) * self._per_second) - self._taken


FILES_PER_EPOCH = 10_000
BYTES_PER_EPOCH = 1 << 30


class FileAdmission(NamedTuple):
    """How much an epoch reads at most. Without a time, the job's target counts, or 10 seconds."""

    files: int = FILES_PER_EPOCH
    size_bytes: int = BYTES_PER_EPOCH
    time_ms: int | None = None


class EpochPace:
    """How much an epoch may have that is to take no longer than a given time: records, or bytes.

    The time from one decision to the next one is that of the epoch between them. An epoch that was smaller than
    it might have been may have waited for input, so it can only show that the job is faster.

    Args:
        first: How much the first epoch gets, whose speed nobody knows yet.
    """

    def __init__(self, first: int) -> None:
        self.admitted = 0
        self._first = self._limit = first
        self._decided_ms = 0
        self._per_ms = 0.0

    def limit(self, time_ms: int, now_ms: int) -> int:
        """The number; `admitted` says how much the epoch got in the end."""
        took_ms = now_ms - self._decided_ms
        if self.admitted and took_ms > 0:
            measured = self.admitted / took_ms
            if self.admitted >= self._limit or measured > self._per_ms:
                self._per_ms = (self._per_ms + measured) / 2 if self._per_ms else measured
        self._decided_ms = now_ms
        self._limit = max(int(self._per_ms * time_ms), 1) if self._per_ms else self._first
        return self._limit
