"""What is late: when a window is over for good, and when a record that no window took is counted.

Flink: `WindowOperator.cleanupTime`, `isWindowLate`, `isElementLate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.runtime.constants import MAX_LONG_VALUE, MIN_LONG_VALUE

if TYPE_CHECKING:
    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.windows.window import Window


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness rules of one window operator; lateness exists in event time only."""

    is_event_time: bool
    allowed_ms: int

    @classmethod
    def of(cls, spec: WindowSpec) -> Lateness:
        """The rules that a spec asks for."""
        return cls(spec.assigner.is_event_time(), spec.allowed_lateness_ms)

    def cleanup_time(self, window: Window) -> int:
        """When the window's contents, trigger state and window state are dropped.

        Raises:
            ValueError: The window ends after the end of time. Flink's long wraps around there, and
                the record vanishes without being counted as late.
        """
        last = window.max_timestamp()
        if last > MAX_LONG_VALUE:
            raise ValueError(
                f"{window!r} ends after the last timestamp there is, {MAX_LONG_VALUE} ms; check the "
                "timestamp assigner: its timestamps must be milliseconds since the epoch"
            )
        return min(last + self.allowed_ms, MAX_LONG_VALUE) if self.is_event_time else last

    def is_window_late(self, window: Window, watermark: int) -> bool:
        """Whether the window is over for good, so that records can't go in any more."""
        return self.is_event_time and self.cleanup_time(window) <= watermark

    def is_element_late(self, timestamp: int | None, watermark: int) -> bool:
        """Whether a record that no window took goes to the late output, or is counted as dropped.

        One that no window took for another reason (it lies between two sliding windows) is ignored
        as long as the watermark has not passed it.
        """
        if timestamp is None:
            timestamp = MIN_LONG_VALUE
        return self.is_event_time and min(timestamp + self.allowed_ms, MAX_LONG_VALUE) <= watermark
