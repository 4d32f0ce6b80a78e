"""How fast a source may go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

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
