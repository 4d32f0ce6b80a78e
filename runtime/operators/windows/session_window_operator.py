"""Event-time sessions with the default trigger: most records begin a session, or lengthen one.

Then the session's window is replaced by a longer one, with the timers of that, and the record goes where
the others are. The general MergingWindowOperator asks the assigner to compare all windows, and the
trigger about each step; it takes the records for which there is more to do: those that are late, that
touch several sessions, or one that has fired.

What comes out is the same, in the same order: timers are set and taken back in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.operators.windows.merging_window_operator import MergingWindowOperator
from opchain.runtime.windows.session_windows import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
)
from opchain.runtime.windows.time_triggers import EventTimeTrigger

if TYPE_CHECKING:
    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.windows.window import TimeWindow


def has_plain_sessions(spec: WindowSpec) -> bool:
    """Whether the operator below runs a spec."""
    return (
        type(spec.assigner) in (EventTimeSessionWindows, DynamicEventTimeSessionWindows)
        and type(spec.trigger) is EventTimeTrigger
    )


class SessionWindowOperator(MergingWindowOperator):
    """A shortcut for records that touch one session of their key at most, and one that has not fired."""

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Puts the record into its session."""
        backend = self.backend
        backend.set_current_key(self.select_key(value))
        event_time = MIN_LONG_VALUE if timestamp is None else timestamp
        (new,) = self.assigner.assign_windows(value, event_time, self.assigner_context)
        in_flight = self.mappings.get(backend.state_key, {})
        touched = [
            window for window in in_flight if new.start <= window.end and window.start <= new.end
        ]
        earliest_end = self.timers.current_watermark + 2
        if not touched and new.end >= earliest_end:
            state_window = self._begin(new)
        elif len(touched) == 1 and touched[0].end >= earliest_end:
            state_window = self._lengthen(touched[0], new, in_flight)
        else:
            self.put_into((new,), value, timestamp)
            return
        self.contents.select(state_window)
        self.contents.add(value, timestamp)

    def _begin(self, window: TimeWindow) -> TimeWindow:
        cleanup_time = self.lateness.cleanup_time(window)
        self.mappings.setdefault(self.backend.state_key, {})[window] = window
        self.timers.register_event_time_timer(window, window.end - 1)
        self._set_cleanup(window, cleanup_time)
        return window

    def _lengthen(
        self, window: TimeWindow, new: TimeWindow, in_flight: dict[TimeWindow, TimeWindow]
    ) -> TimeWindow:
        if window.start <= new.start and new.end <= window.end:
            return in_flight[window]
        longer = window.cover(new)
        cleanup_time = self.lateness.cleanup_time(longer)
        self.timers.register_event_time_timer(longer, longer.end - 1)
        self.timers.delete_event_time_timer(window, window.end - 1)
        if self.lateness.allowed_ms:
            self.trigger.window = window
            self.delete_cleanup(window)
            self._set_cleanup(longer, cleanup_time)
        state_window = in_flight[longer] = in_flight.pop(window)
        return state_window

    def _set_cleanup(self, window: TimeWindow, time: int) -> None:
        if self.lateness.allowed_ms and time != MAX_LONG_VALUE:
            self.timers.register_event_time_timer(window, time)
