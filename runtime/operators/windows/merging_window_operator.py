"""The window operator for windows that merge, such as sessions.

Flink: the same `WindowOperator`, where its assigner is a `MergingWindowAssigner`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.constants import MIN_LONG_VALUE
from opchain.runtime.errors import StreamError
from opchain.runtime.operators.windows.merging_window_set import MergingWindowSet
from opchain.runtime.operators.windows.window_operator import WindowOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.task.vertex_program import OperatorProgram
    from opchain.runtime.windows.assigners import MergingWindowAssigner

WINDOWS = "merging-window-set"
"""The name of the state that holds a key's windows in flight, as in Flink."""


class MergingWindowOperator(WindowOperator):
    """Merges a record's windows with those in flight before the record goes in."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.merging_assigner: MergingWindowAssigner[Any, Any] = self.spec.assigner  # type: ignore[assignment]
        self.mappings: MutableMapping[Any, dict[Any, Any]]

    def open(self) -> None:
        """Opens the functions, and takes over restored windows and timers."""
        super().open()
        self.mappings = self.backend.table(WINDOWS)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Puts the record into its windows, merged, and asks the trigger about each of them."""
        self.backend.set_current_key(self.select_key(value))
        event_time = MIN_LONG_VALUE if timestamp is None else timestamp
        windows = self.assigner.assign_windows(value, event_time, self.assigner_context)
        self.put_into(windows, value, timestamp)

    def put_into(self, windows: Iterable[Any], value: Any, timestamp: int | None) -> None:
        """Puts a record of the current key into its windows."""
        in_flight = self._windows_in_flight()
        is_skipped = True
        for new in windows:
            window = in_flight.add(new, self._merge)
            if self.lateness.is_window_late(window, self.timers.current_watermark):
                in_flight.retire(window)
                continue
            is_skipped = False
            self.contents.select(in_flight.state_window(window))
            self.take_in(window, value, timestamp)
        self._keep(in_flight)
        if is_skipped:
            self.skip(value, timestamp)

    def select_contents(self, window: Any) -> bool:
        """A timer of a window that was merged away has nothing to do.

        Only a trigger that doesn't clean up leaves one; its state went with the window.
        """
        state_window = self.mappings.get(self.backend.state_key, {}).get(window)
        if state_window is None:
            return False
        self.contents.select(state_window)
        return True

    def drop(self, window: Any) -> None:
        """Takes the window out of flight, too."""
        super().drop(window)
        in_flight = self._windows_in_flight()
        in_flight.retire(window)
        self._keep(in_flight)

    def _windows_in_flight(self) -> MergingWindowSet[Any]:
        return MergingWindowSet(
            self.merging_assigner, self.mappings.setdefault(self.backend.state_key, {})
        )

    def _keep(self, in_flight: MergingWindowSet[Any]) -> None:
        if not in_flight.mapping:
            self.mappings.pop(self.backend.state_key, None)

    def _merge(
        self, result: Any, merged: list[Any], state_window: Any, state_windows: list[Any]
    ) -> None:
        self._check_end(result)
        trigger = self.trigger
        trigger.window = result
        trigger.on_merge(merged)
        for window in merged:
            trigger.window = window
            trigger.clear()
            self.delete_cleanup(window)
        self.contents.merge(state_window, state_windows)

    def _check_end(self, window: Any) -> None:
        """Windows may not shrink into the past by merging; those of our own assigners never do."""
        if self.lateness.is_event_time:
            clock, now = "watermark", self.timers.current_watermark
        else:
            clock, now = "processing time", self.trigger.get_current_processing_time()
        if self.lateness.cleanup_time(window) <= now:
            program = self.program
            raise StreamError(
                f"'{program.name}' ({program.call_site}): {self.merging_assigner} merged windows into "
                f"{window!r}, which is over already (the {clock} is {now}); merging must not make "
                "a window end earlier"
            )
