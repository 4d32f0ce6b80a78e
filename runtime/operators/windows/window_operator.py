"""The window operator for any assigner, trigger and evictor.

Flink: `WindowOperator` and `EvictingWindowOperator`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.errors import short_repr
from opchain.runtime.operators.windows.keyed_window_operator import KeyedWindowOperator
from opchain.runtime.operators.windows.trigger_context import TriggerContext
from opchain.runtime.operators.windows.window_context import AssignerContext
from opchain.runtime.operators.windows.window_state import TIMERS, declare_contents, window_state_of
from opchain.runtime.windows.triggers import TriggerResult

if TYPE_CHECKING:
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.state.internal_timer_service import InternalTimerService
    from opchain.runtime.task.vertex_program import OperatorProgram


class WindowOperator(KeyedWindowOperator):
    """Windows that stay as they are assigned; for those that merge see MergingWindowOperator."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.assigner = self.spec.assigner
        self.assigner_context = AssignerContext(self)
        self.contents = window_state_of(self)
        self.timers: InternalTimerService
        self.trigger: TriggerContext

    def open(self) -> None:
        """Opens the functions, and takes over restored timers."""
        super().open()
        declare_contents(self)
        self.timers = self.context.timers.service(TIMERS, self)
        self.trigger = TriggerContext(
            self.spec.trigger, self.timers, self.backend, self.context.metrics
        )

    def event_time(self) -> int:
        """The watermark of the timers; in batch mode it moves only while those of a key fire."""
        return self.timers.current_watermark

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Puts the record into its windows, and asks the trigger about each of them."""
        self.backend.set_current_key(self.select_key(value))
        event_time = MIN_LONG_VALUE if timestamp is None else timestamp
        windows = self.assigner.assign_windows(value, event_time, self.assigner_context)
        is_skipped = True
        for window in windows:
            if not self.lateness.is_window_late(window, self.timers.current_watermark):
                is_skipped = False
                self.contents.select(window)
                self.take_in(window, value, timestamp)
        if is_skipped:
            self.skip(value, timestamp)

    def take_in(self, window: Any, value: Any, timestamp: int | None) -> None:
        """Adds a record to the contents that are selected, the window's."""
        self.contents.add(value, timestamp)
        trigger = self.trigger
        trigger.window = window
        result = trigger.on_element(value, MIN_LONG_VALUE if timestamp is None else timestamp)
        self._follow(result, window)
        self._register_cleanup(window)

    def on_event_time(self, time: int, window: Any) -> None:
        """Takes an event-time timer of the current key."""
        if self.select_contents(window):
            self.trigger.window = window
            self._follow(self.trigger.on_event_time(time), window)
            if self.lateness.is_event_time and time == self.lateness.cleanup_time(window):
                self.drop(window)

    def on_processing_time(self, time: int, window: Any) -> None:
        """Takes a processing-time timer of the current key."""
        if self.select_contents(window):
            self.trigger.window = window
            self._follow(self.trigger.on_processing_time(time), window)
            if not self.lateness.is_event_time and time == self.lateness.cleanup_time(window):
                self.drop(window)

    def select_contents(self, window: Any) -> bool:
        """Selects a window's contents; whether the window is still in flight."""
        self.contents.select(window)
        return True

    def drop(self, window: Any) -> None:
        """Drops all that there is of a window whose contents are selected."""
        self.contents.clear()
        self.trigger.clear()
        self.evaluation.clear(window)

    def _follow(self, result: TriggerResult, window: Any) -> None:
        if result is TriggerResult.CONTINUE:
            return
        if not isinstance(result, TriggerResult):
            raise TypeError(
                f"trigger {self.spec.trigger!r} gives {short_repr(result)}; it must give a "
                "TriggerResult, such as TriggerResult.CONTINUE"
            )
        is_fire, is_purge = result.value
        if is_fire:
            self.contents.emit(window)
        if is_purge:
            self.contents.clear()

    def _register_cleanup(self, window: Any) -> None:
        time = self.lateness.cleanup_time(window)
        if time == MAX_LONG_VALUE:
            return  # the end of time needs no timer
        if self.lateness.is_event_time:
            self.trigger.register_event_time_timer(time)
        else:
            self.trigger.register_processing_time_timer(time)

    def delete_cleanup(self, window: Any) -> None:
        """Takes back the timer that drops a window; the trigger's window must be that one."""
        time = self.lateness.cleanup_time(window)
        if time == MAX_LONG_VALUE:
            return
        if self.lateness.is_event_time:
            self.trigger.delete_event_time_timer(time)
        else:
            self.trigger.delete_processing_time_timer(time)
