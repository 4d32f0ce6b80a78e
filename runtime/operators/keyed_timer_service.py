"""The TimerService that a process function on a keyed stream sees."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from opchain.runtime.errors import short_repr
from opchain.runtime.state.keyed_backend import VOID
from opchain.runtime.timer_service import TimerService

if TYPE_CHECKING:
    from opchain.runtime.state.internal_timer_service import InternalTimerService

USER_TIMERS = "user-timers"
"""The name of the functions' timers among an operator's, as in Flink."""


class KeyedTimerService(TimerService):
    """Timers of the current key, without namespaces. Flink: `SimpleTimerService`.

    A time that is no whole number is refused with TypeError.
    """

    __slots__ = ("_timers",)

    def __init__(self, timers: InternalTimerService) -> None:
        self._timers = timers

    def current_processing_time(self) -> int:
        """The task's clock in milliseconds."""
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        """The event time reached so far, in milliseconds."""
        return self._timers.current_watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        """See TimerService."""
        self._timers.register_processing_time_timer(VOID, _time(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        """See TimerService."""
        self._timers.register_event_time_timer(VOID, _time(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """See TimerService."""
        self._timers.delete_processing_time_timer(VOID, _time(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        """See TimerService."""
        self._timers.delete_event_time_timer(VOID, _time(timestamp))


def _time(timestamp: int) -> int:
    try:
        return index(timestamp)
    except TypeError:
        raise TypeError(
            f"a timer is set, or deleted, for {short_repr(timestamp)}: its time must be an int, in milliseconds"
        ) from None
