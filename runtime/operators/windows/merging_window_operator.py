"""The window operators of assigners whose windows merge: session windows, and merging assigners of users.

When the sessions [0, 5) and [3, 9) become [0, 9), the records of the first session stay where they are. The first
session's window is the *state window* of the merged one, and the records of the second session move there.

MergingWindowOperator handles every assigner: it has the assigner merge the windows of the key, and asks the trigger
about each merge. Event-time sessions with the default trigger have a faster operator (session_window_operator.py).

Flink: `WindowOperator` with a `MergingWindowAssigner`, and `MergingWindowSet`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from opchain.runtime.errors import StreamError
from opchain.runtime.functions.type_variables import W
from opchain.runtime.operators.windows.window_operator import WindowOperator
from opchain.runtime.time import MIN_LONG_VALUE
from opchain.runtime.windows.assigners import MergingWindowAssigner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping

    from opchain.runtime.operators.operator import OperatorContext, Output
    from opchain.runtime.program.vertex_program import OperatorProgram


if TYPE_CHECKING:
    OnMerge: TypeAlias = Callable[[W, list[W], W, list[W]], None]
    """Gets the merged window, the windows in flight that became it, its state window, and the state
    windows whose contents are to move there."""


class MergingWindowSet(Generic[W]):
    """The windows in flight of one key.

    `mapping` has the state window of each. It is changed in place; the caller keeps it in state.
    """

    def __init__(self, assigner: MergingWindowAssigner[Any, W], mapping: dict[W, W]) -> None:
        self._assigner = assigner
        self.mapping = mapping

    def state_window(self, window: W) -> W | None:
        """The window under which the contents lie, or None where the window is not in flight."""
        return self.mapping.get(window)

    def retire(self, window: W) -> None:
        """Takes a window out."""
        del self.mapping[window]

    def add(self, window: W, on_merge: OnMerge[W]) -> W:
        """Takes a new window in, and gives the window that it is part of from now on.

        `on_merge` is called for each group of windows in flight that become one or grow; the new
        window itself, which has no contents yet, is not among them.

        A window that is in flight already stays as it is. Flink starts it afresh then, and loses the
        contents of one that grew to just this size: possible where gaps differ by record.

        Raises:
            ValueError: The assigner merges windows that it was not asked about, or none at all.
        """
        if window in self.mapping:
            return window
        merges = _Merges[W]()
        self._assigner.merge_windows([*self.mapping, window], merges)
        result = window
        is_merged = False
        for merged, group in merges.groups.items():
            if window in group:
                is_merged = True
                result = merged
            self._merge(merged, [item for item in group if item != window], on_merge)
        if not is_merged:
            self.mapping[window] = window
        return result

    def _merge(self, merged: W, group: list[W], on_merge: OnMerge[W]) -> None:
        if not group or any(item not in self.mapping for item in group):
            raise ValueError(
                f"{self._assigner} merges {group} into {merged}; a merge may only contain "
                f"windows that it was given, and at least one besides the new window"
            )
        state_windows = [self.mapping.pop(item) for item in group]
        self.mapping[merged] = state_windows[0]
        # A window that only swallows the new one is what it was before.
        if group != [merged]:
            on_merge(merged, group, state_windows[0], state_windows[1:])


class _Merges(MergingWindowAssigner.MergeCallback[W]):
    """Collects what an assigner reports, before anything is changed."""

    def __init__(self) -> None:
        self.groups: dict[W, list[W]] = {}

    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        self.groups[merge_result] = list(dict.fromkeys(to_be_merged))


WINDOWS = "merging-window-set"
"""The name of the state that holds a key's windows in flight, as in Flink."""


class MergingWindowOperator(WindowOperator):
    """Merges the windows of a record with those of its key, before it adds the record."""

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
                f"{window!r}, which has already ended (the {clock} is {now}); merging must not "
                f"make "
                "a window end earlier"
            )
