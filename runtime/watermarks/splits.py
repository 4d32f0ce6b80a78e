"""Watermarks per split of a source, and watermark alignment: fast sources of a group wait for the slowest.

Each split has its own generator. The source's watermark is the minimum over its active splits, from their registration
to their release. Flink: `WatermarkOutputMultiplexer` and `CombinedWatermarkStatus`, as `SourceOperator` uses them
(FLIP-27).

For alignment, Flink has FLIP-182, FLIP-217 and `SourceCoordinator.announceCombinedWatermark`. There, sources report to
the JobManager at an interval. Here, within one process, they report after each batch.
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
    """The watermark of a split, and the generator that computes it.

    Attributes:
        name: The split's name.
        generator: Sees only the records of this split.
        watermark: The last watermark of the generator.
        is_idle: Whether the split is ignored for the source's watermark, unless it is open.
        is_open: Whether the current epoch may have records of the split that have not been read.
    """

    __slots__ = (
        "_owner",
        "generator",
        "is_idle",
        "is_open",
        "is_released",
        "is_waiting",
        "name",
        "watermark",
    )

    def __init__(
        self, owner: CombinedWatermarks, name: str, generator: WatermarkGenerator[Any]
    ) -> None:
        self._owner = owner
        self.name = name
        self.generator = generator
        self.watermark = MIN_LONG_VALUE
        self.is_idle = False
        self.is_open = False
        self.is_released = False
        self.is_waiting = False

    def emit_watermark(self, timestamp: int) -> None:
        """Raises the split's watermark, and possibly the source's. Marks the split active."""
        self.mark_active()
        if timestamp > self.watermark:
            self.watermark = timestamp
            self._owner.rise()

    def mark_idle(self) -> None:
        """Excludes the split from the source's watermark."""
        if not self.is_idle:
            self.is_idle = True
            self._owner.rise()

    def mark_active(self) -> None:
        """Includes the split in the source's watermark again."""
        if self.is_idle:
            self.is_idle = False
            self._owner.wait_for(self)


class CombinedWatermarks:
    """The watermarks of the splits of a source subtask.

    In an epoch, a split is open until its records have been read. An open split holds back the source's watermark also
    while it is idle. Otherwise its records would be late if another split is read first.

    Args:
        output: Receives the minimum watermark of the active splits, and idleness if all splits are idle.
        make_generator: Creates the generator of a split.
    """

    def __init__(
        self, output: WatermarkOutput, make_generator: Callable[[], WatermarkGenerator[Any]]
    ) -> None:
        self._output = output
        self._make_generator = make_generator
        self._splits: dict[str, SplitWatermarks] = {}
        # A heap with one entry per active or open split. Entries may have an outdated watermark. An entry is updated
        # when it becomes the minimum, so a split that is ahead costs nothing.
        self._least: list[tuple[int, int, SplitWatermarks]] = []
        self._entries = 0

    def __iter__(self) -> Iterator[SplitWatermarks]:
        return iter(list(self._splits.values()))

    def __len__(self) -> int:
        return len(self._splits)

    def register(self, name: str) -> SplitWatermarks:
        """Adds a split with this name, which holds back the source's watermark from now on."""
        split = self._splits.get(name)
        if split is None:
            split = self._splits[name] = SplitWatermarks(self, name, self._make_generator())
            self.wait_for(split)
        return split

    def open(self, split: SplitWatermarks) -> None:
        """Makes a split hold back the source's watermark, also if it is idle."""
        split.is_open = True
        self.wait_for(split)

    def close(self, split: SplitWatermarks) -> None:
        """Takes the end of a split's records in an epoch."""
        split.is_open = False
        if split.is_idle:
            self.rise()

    def release(self, split: SplitWatermarks) -> None:
        """Removes a split that has ended, which no longer holds back the source's watermark."""
        del self._splits[split.name]
        split.is_released = True
        if self._splits:
            self.rise()

    def wait_for(self, split: SplitWatermarks) -> None:
        """Adds a split to the minimum."""
        if not split.is_waiting:
            split.is_waiting = True
            self._entries += 1
            heapq.heappush(self._least, (split.watermark, self._entries, split))

    def rise(self) -> None:
        """Emits the minimum watermark of the active and open splits. Marks the output idle if there are none."""
        heap = self._least
        while heap:
            watermark, entry, split = heap[0]
            if split.is_released or (split.is_idle and not split.is_open):
                heapq.heappop(heap)
                split.is_waiting = False
            elif watermark < split.watermark:
                heapq.heapreplace(heap, (split.watermark, entry, split))
            else:
                # Idle splits alone do not raise the watermark.
                if not split.is_idle or not all(each.is_idle for each in self):
                    self._output.emit_watermark(watermark)
                return
        if self._splits:
            self._output.mark_idle()


class AlignmentGroup:
    """The watermarks of the source subtasks of a group. Thread-safe.

    Args:
        members: All subtasks. Until a subtask has reported, the others must not run ahead of it.
    """

    def __init__(self, members: Iterable[Hashable]) -> None:
        self._changed = threading.Condition()
        self._watermarks = dict.fromkeys(members, MIN_LONG_VALUE)
        self._least = MIN_LONG_VALUE

    def report(self, member: Hashable, watermark: int) -> None:
        """Stores the watermark of a subtask. 2**63 - 1 means that it is idle or has ended."""
        with self._changed:
            if self._watermarks[member] == watermark:
                return
            self._watermarks[member] = watermark
            self._least = min(self._watermarks.values())
            self._changed.notify_all()

    def limit(self, drift_ms: int) -> int:
        """The greatest watermark at which a source or split may continue."""
        return limit_of(self._least, drift_ms)

    def wait(self, watermark: int, drift_ms: int, timeout_s: float) -> None:
        """Waits until a split at this watermark may continue, or until the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: watermark <= self.limit(drift_ms), timeout_s)


def limit_of(least: int, drift_ms: int) -> int:
    """The greatest allowed watermark, given the minimum of the group."""
    return min(least + drift_ms, MAX_LONG_VALUE)
