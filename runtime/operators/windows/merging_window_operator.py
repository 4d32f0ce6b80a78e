"""The window operators of assigners whose windows merge: session windows, and merging assigners of users.

When the sessions [0, 5) and [3, 9) become [0, 9), the records of the first session keep their namespace in keyed
state. So [0, 5) is the *state window* of [0, 9). The records of the second session move to this namespace.

MergingWindowOperator handles every assigner. The assigner merges the windows of the key, and the trigger is called
for each merge. Event-time sessions with the default trigger have a faster operator (session_window_operator.py).

Flink: `WindowOperator` with a `MergingWindowAssigner`, and `MergingWindowSet`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from opchain.runtime.errors import StreamError
from opchain.runtime.functions.type_variables import W
from opchain.runtime.operators.windows.window_operator import WindowOperator
from opchain.runtime.time import MIN_LONG_VALUE
from opchain.runtime.windows.assigners import MergingWindowAssigner
from opchain.runtime.windows.time_windows import merges_neighbors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping

    from opchain.runtime.operators.operator import OperatorContext, Output
    from opchain.runtime.program.vertex_program import OperatorProgram


if TYPE_CHECKING:
    OnMerge: TypeAlias = Callable[[W, list[W], W, list[W]], None]
    """Gets the merged window, the active windows that it replaces, its state window, and the state windows whose
    contents move there."""


class MergingWindowSet(Generic[W]):
    """The active windows of one key.

    `mapping` has the state window of each. It is changed in place, and the caller stores it in keyed state.

    Session windows never overlap or touch each other. If `in_order` has them sorted, only those that a new window touches
    are passed to the assigner: a key may have thousands of windows.
    """

    def __init__(
        self,
        assigner: MergingWindowAssigner[Any, W],
        mapping: dict[W, W],
        in_order: list[Any] | None = None,
    ) -> None:
        self._assigner = assigner
        self._in_order = in_order
        self.mapping = mapping

    def state_window(self, window: W) -> W | None:
        """The namespace of a window's contents; None if the window is not active."""
        return self.mapping.get(window)

    def remove(self, window: W) -> None:
        """Removes an active window."""
        self._take(window)

    def add(self, window: W, on_merge: OnMerge[W]) -> W:
        """Adds a window, and returns the window that it was merged into; the window itself if none.

        `on_merge` is called for each group of active windows that are merged or extended. The group does not include
        the new window, which has no contents yet.

        An active window stays unchanged if it is added again. Flink replaces it by an empty one, so contents are lost
        if a session has grown to exactly this window. This can happen if gaps differ by record.

        Raises:
            ValueError: The assigner merged windows that are not active, or a group without any.
        """
        if window in self.mapping:
            return window
        merges = _Merges[W]()
        self._assigner.merge_windows([*self._candidates(window), window], merges)
        result = window
        is_merged = False
        for merged, group in merges.groups.items():
            if window in group:
                is_merged = True
                result = merged
            self._merge(merged, [item for item in group if item != window], on_merge)
        if not is_merged:
            self._put(window, window)
        return result

    def _merge(self, merged: W, group: list[W], on_merge: OnMerge[W]) -> None:
        if not group or any(item not in self.mapping for item in group):
            raise ValueError(
                f"{self._assigner} merges {group} into {merged}; merge_windows must call merge only with "
                f"windows from its argument, and with at least one besides the new window"
            )
        state_windows = [self._take(item) for item in group]
        self._put(merged, state_windows[0])
        # A window that contains the new one has not changed.
        if group != [merged]:
            on_merge(merged, group, state_windows[0], state_windows[1:])

    def _candidates(self, window: Any) -> Iterable[W]:
        """The windows that may merge with a new one."""
        if self._in_order is None:
            return self.mapping
        return touching(self._in_order, window.start, window.end)

    def _put(self, window: W, state_window: W) -> None:
        self.mapping[window] = state_window
        if self._in_order is not None:
            insort(self._in_order, window, key=START)

    def _take(self, window: W) -> W:
        if self._in_order is not None:
            del self._in_order[bisect_left(self._in_order, window)]
        return self.mapping.pop(window)


START = attrgetter("start")


def touching(in_order: list[Any], start: int, end: int) -> list[Any]:
    """The windows or sessions that overlap or touch a span. They are sorted by start, and do not touch each other."""
    last = first = bisect_right(in_order, end, key=START)
    while first and in_order[first - 1].end >= start:
        first -= 1
    return in_order[first:last]


class _Merges(MergingWindowAssigner.MergeCallback[W]):
    """Collects the merges that an assigner reports."""

    def __init__(self) -> None:
        self.groups: dict[W, list[W]] = {}

    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        self.groups[merge_result] = list(dict.fromkeys(to_be_merged))


WINDOWS = "merging-window-set"
"""The name of the state with the active windows of a key, as in Flink."""

_MANY = 16
"""The number of windows of a key from which they are also kept sorted."""

_MOST_SORTED = 4096
"""The number of keys whose sorted windows are kept, because with a backend on disk their dictionaries stay in memory too."""


class MergingWindowOperator(WindowOperator):
    """Merges the windows of a record with the active windows of its key, and then adds the record."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.merging_assigner: MergingWindowAssigner[Any, Any] = self.spec.assigner  # type: ignore[assignment]
        self.mappings: MutableMapping[Any, dict[Any, Any]]
        # The sorted windows of keys with many windows, each beside the dictionary that it was made for.
        self._sorted: dict[Any, tuple[dict[Any, Any], list[Any]]] = {}
        self._sorts = merges_neighbors(self.merging_assigner)

    def open(self) -> None:
        """Opens the functions; restored windows and timers are in keyed state."""
        super().open()
        self.mappings = self.backend.table(WINDOWS)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Adds the record to its windows, which may merge, and calls the trigger for each of them."""
        self.backend.set_current_key(self.select_key(value))
        event_time = MIN_LONG_VALUE if timestamp is None else timestamp
        windows = self.assigner.assign_windows(value, event_time, self.assigner_context)
        self.put_into(windows, value, timestamp)

    def put_into(self, windows: Iterable[Any], value: Any, timestamp: int | None) -> None:
        """Adds a record of the current key to its windows."""
        active = self._active_windows()
        is_skipped = True
        for new in windows:
            window = active.add(new, self._merge)
            cleanup_time = self.lateness.cleanup_time(window)
            if self.lateness.is_over(cleanup_time, self.timers.current_watermark):
                active.remove(window)
                continue
            is_skipped = False
            self.contents.select(active.state_window(window))
            self.add_element(window, value, timestamp, cleanup_time)
        self._store(active)
        if is_skipped:
            self.skip(value, timestamp)

    def select_contents(self, window: Any) -> bool:
        """Selects the contents of a window. Returns False if the window was merged into another.

        Only a trigger that does not delete its timers leaves a timer of such a window.
        """
        state_window = self.mappings.get(self.backend.state_key, {}).get(window)
        if state_window is None:
            return False
        self.contents.select(state_window)
        return True

    def drop(self, window: Any) -> None:
        """Drops a window, which is then no longer active."""
        super().drop(window)
        active = self._active_windows()
        active.remove(window)
        self._store(active)

    def _active_windows(self) -> MergingWindowSet[Any]:
        key = self.backend.state_key
        mapping, in_order = self.mappings.setdefault(key, {}), None
        if self._sorts and len(mapping) >= _MANY:
            known, in_order = self._sorted.get(key, (None, []))
            if known is not mapping:
                if len(self._sorted) >= _MOST_SORTED:
                    self._sorted.clear()
                in_order = sorted(mapping)
                self._sorted[key] = mapping, in_order
        elif self._sorted:
            self._sorted.pop(key, None)
        return MergingWindowSet(self.merging_assigner, mapping, in_order)

    def _store(self, active: MergingWindowSet[Any]) -> None:
        if not active.mapping:
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
        """Raises an error if a merge made a window end in the past. opchain's own assigners never do."""
        if self.lateness.is_event_time:
            clock, now = "watermark", self.timers.current_watermark
        else:
            clock, now = "processing time", self.trigger.get_current_processing_time()
        if self.lateness.cleanup_time(window) <= now:
            program = self.program
            raise StreamError(
                f"{program.label}: {self.merging_assigner} merged windows into "
                f"{window!r}, which has already ended (the {clock} is {now}); merge_windows must not make "
                f"a window end earlier"
            )
