"""Watermark alignment: sources of one group that are ahead wait for the slowest one.

Flink: FLIP-182 and FLIP-217, `SourceCoordinator.announceCombinedWatermark`. There sources report to the
JobManager at an interval; in one process they report after each batch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from opchain.runtime.constants import MAX_LONG_VALUE, MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable


class AlignmentGroup:
    """The watermarks of a group's source subtasks; used by the threads of all of them.

    Args:
        members: All subtasks: nobody may run ahead of one that has not begun.
    """

    def __init__(self, members: Iterable[Hashable]) -> None:
        self._changed = threading.Condition()
        self._watermarks = dict.fromkeys(members, MIN_LONG_VALUE)
        self._least = MIN_LONG_VALUE

    def report(self, member: Hashable, watermark: int) -> None:
        """Notes how far a subtask is; 2**63 - 1 for one that is idle or has ended."""
        with self._changed:
            if self._watermarks[member] == watermark:
                return
            self._watermarks[member] = watermark
            self._least = min(self._watermarks.values())
            self._changed.notify_all()

    def limit(self, drift_ms: int) -> int:
        """The greatest watermark of a source or split that may continue."""
        return limit_of(self._least, drift_ms)

    def wait(self, watermark: int, drift_ms: int, timeout_s: float) -> None:
        """Waits until a split at this watermark may continue, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: watermark <= self.limit(drift_ms), timeout_s)


def limit_of(least: int, drift_ms: int) -> int:
    """The greatest watermark that is allowed where the least of the group is this one."""
    return min(least + drift_ms, MAX_LONG_VALUE)
