"""The watermarks of a source's splits, and alignment: sources of one group that are ahead wait for the slowest one.

Each split has a generator of its own, and the least watermark counts. A split holds the source's watermark back from
its registration until its release. An idle split does not. Flink: `WatermarkOutputMultiplexer` and
`CombinedWatermarkStatus`, as `SourceOperator` uses them (FLIP-27).

Flink aligns with FLIP-182 and FLIP-217, `SourceCoordinator.announceCombinedWatermark`. There sources report to the
JobManager at an interval; in one process they report after each batch.
"""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING, Any

from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.watermarks.generators import WatermarkGenerator, WatermarkOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator


class SplitWatermarks(WatermarkOutput):
    """The watermark of one split, and the generator that makes it.

    Attributes:
        name: The split's name.
        generator: Sees the records of this split only.
        watermark: The last one that the generator emitted.
        is_idle: Whether the source continues without this split.
    """

    __slots__ = ("_owner", "generator", "is_idle", "is_released", "is_waiting", "name", "watermark")

    def __init__(
        self, owner: CombinedWatermarks, name: str, generator: WatermarkGenerator[Any]
    ) -> None:
        self._owner = owner
        self.name = name
        self.generator = generator
        self.watermark = MIN_LONG_VALUE
        self.is_idle = False
        self.is_released = False
        self.is_waiting = False

    def emit_watermark(self, timestamp: int) -> None:
        """Raises the split's watermark, and perhaps the source's. The split is active again."""
        self.mark_active()
        if timestamp > self.watermark:
            self.watermark = timestamp
            self._owner.rise()

    def mark_idle(self) -> None:
        """Has the source continue without this split."""
        if not self.is_idle:
            self.is_idle = True
            self._owner.rise()

    def mark_active(self) -> None:
        """Has the source wait for this split again."""
        if self.is_idle:
            self.is_idle = False
            self._owner.wait_for(self)


class CombinedWatermarks:
    """The splits that a source subtask works on.

    Args:
        output: Gets the least watermark of the active splits, and idleness when all splits are idle.
        make_generator: Makes the generator of a split.
    """

    def __init__(
        self, output: WatermarkOutput, make_generator: Callable[[], WatermarkGenerator[Any]]
    ) -> None:
        self._output = output
        self._make_generator = make_generator
        self._splits: dict[str, SplitWatermarks] = {}
        # One entry per active split. An entry's watermark may be out of date: it is renewed when it
        # becomes the least, so a split that is ahead costs nothing.
        self._least: list[tuple[int, int, SplitWatermarks]] = []
        self._entries = 0

    def __iter__(self) -> Iterator[SplitWatermarks]:
        return iter(list(self._splits.values()))

    def __len__(self) -> int:
        return len(self._splits)

    def register(self, name: str) -> SplitWatermarks:
        """The split of this name, which holds the source's watermark back from now on."""
        split = self._splits.get(name)
        if split is None:
            split = self._splits[name] = SplitWatermarks(self, name, self._make_generator())
            self.wait_for(split)
        return split

    def release(self, split: SplitWatermarks) -> None:
        """Forgets a split that has ended: it no longer holds the watermark back."""
        del self._splits[split.name]
        split.is_released = True
        if self._splits:
            self.rise()

    def wait_for(self, split: SplitWatermarks) -> None:
        """Counts an active split."""
        if not split.is_waiting:
            split.is_waiting = True
            self._entries += 1
            heapq.heappush(self._least, (split.watermark, self._entries, split))

    def rise(self) -> None:
        """Emits the least watermark of the active splits; marks the output idle if there is none."""
        heap = self._least
        while heap:
            watermark, entry, split = heap[0]
            if split.is_released or split.is_idle:
                heapq.heappop(heap)
                split.is_waiting = False
            elif watermark < split.watermark:
                heapq.heapreplace(heap, (split.watermark, entry, split))
            else:
                self._output.emit_watermark(watermark)
                return
        if self._splits:
            self._output.mark_idle()


class AlignmentGroup:
    """The watermarks of a group's source subtasks; used by the threads of all of them.

    Args:
        members: All subtasks. No subtask may run ahead of one that has not begun.
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
