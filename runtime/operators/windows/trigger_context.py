"""What a trigger works with: the clocks, timers and state of the window at hand.

Flink: `WindowOperator.Context`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.windows.triggers import Trigger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.metrics.metric_group import MetricGroup
    from opchain.runtime.state.internal_timer_service import InternalTimerService
    from opchain.runtime.state.keyed_backend import KeyedStateBackend
    from opchain.runtime.windows.triggers import TriggerResult


class TriggerContext(Trigger.OnMergeContext):
    """One object per operator: the operator sets `window` before each call, the backend has the key."""

    __slots__ = ("_backend", "_metric_group", "_timers", "_trigger", "merged", "window")

    def __init__(
        self,
        trigger: Trigger[Any, Any],
        timers: InternalTimerService,
        backend: KeyedStateBackend,
        metric_group: MetricGroup,
    ) -> None:
        self._trigger = trigger
        self._timers = timers
        self._backend = backend
        self._metric_group = metric_group
        self.window: Any = None
        self.merged: Sequence[Any] = ()

    # What the operator asks the trigger

    def on_element(self, value: Any, timestamp: int) -> TriggerResult:
        """Asks about an element of the window at hand."""
        return self._trigger.on_element(value, timestamp, self.window, self)

    def on_event_time(self, time: int) -> TriggerResult:
        """Asks about an event-time timer of the window at hand."""
        return self._trigger.on_event_time(time, self.window, self)

    def on_processing_time(self, time: int) -> TriggerResult:
        """Asks about a processing-time timer of the window at hand."""
        return self._trigger.on_processing_time(time, self.window, self)

    def on_merge(self, merged: Sequence[Any]) -> None:
        """Tells that these windows became the one at hand."""
        self.merged = merged
        self._trigger.on_merge(self.window, self)

    def clear(self) -> None:
        """Has the trigger clean up the window at hand."""
        self._trigger.clear(self.window, self)

    # What the trigger asks for

    def get_current_processing_time(self) -> int:
        """The task's clock."""
        return self._timers.current_processing_time()

    def get_current_watermark(self) -> int:
        """The operator's event time."""
        return self._timers.current_watermark

    def get_metric_group(self) -> Any:
        """The operator's."""
        return self._metric_group

    def register_processing_time_timer(self, time: int) -> None:
        """Sets a timer of the window at hand."""
        self._timers.register_processing_time_timer(self.window, time)

    def register_event_time_timer(self, time: int) -> None:
        """Sets a timer of the window at hand."""
        self._timers.register_event_time_timer(self.window, time)

    def delete_processing_time_timer(self, time: int) -> None:
        """Takes back a timer of the window at hand."""
        self._timers.delete_processing_time_timer(self.window, time)

    def delete_event_time_timer(self, time: int) -> None:
        """Takes back a timer of the window at hand."""
        self._timers.delete_event_time_timer(self.window, time)

    def get_partitioned_state(self, state_descriptor: Any) -> Any:
        """The state of the key and window at hand."""
        return self._backend.get_partitioned_state(self.window, state_descriptor)

    def merge_partitioned_state(self, state_descriptor: Any) -> None:
        """Unites the merged windows' states into that of the window at hand."""
        if self.merged:
            state = self._backend.namespaced_state(state_descriptor)
            state.merge_namespaces(self.window, self.merged)
