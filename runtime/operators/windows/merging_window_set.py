"""Windows that merge: which ones a key has in flight, and under which window the contents of each lie.

When sessions [0, 5) and [3, 9) become [0, 9), the records of the first stay where they are: its
window is the *state window* of the merged one, and only the other's records move there.

Flink: `MergingWindowSet`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.type_variables import W
from opchain.runtime.windows.assigners import MergingWindowAssigner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

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
                f"{self._assigner} merges {group} into {merged}; a merge must name windows that it "
                "was given, and one besides the new window"
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
