"""Reads the splits of a source subtask by turns, the one that is furthest behind in event time first.

So the splits stay together in event time, and windows close while the source is read. The order follows
from the records alone: the same input is read in the same order. Flink reads the splits of a FileSource
one after the other, in an order that depends on timing, and drops what the second one has behind the first.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from opchain.runtime.records.elements import NothingYet, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.functions.source import Source
    from opchain.runtime.watermarks.splits import SplitWatermarks

NOTHING_YET_S = 0.01
"""When a source that gave an empty batch, and no time to wait, is asked again."""

MOST_OPEN = 32
"""How many splits that can be reopened are open at once: each file holds a block of 1 MB."""


class SplitReader:
    """The open splits of one subtask.

    Args:
        source: Reads a split.
        splits: The splits, each with its watermarks.
        batch_size: How many records a batch has.
        enter: Called before a split's turn.
        leave: Called when a split has given all its records; None where more of it may come later.
        is_endless: Whether the splits never end. They are read in turn then, whatever their watermarks.
        is_ahead: Whether a split at a watermark has to wait for other sources: it is passed over then.
        pause: Called when all splits have to wait: returns soon.
    """

    def __init__(
        self,
        source: Source[Any],
        splits: Sequence[tuple[Any, SplitWatermarks]],
        batch_size: int,
        *,
        enter: Callable[[SplitWatermarks], None],
        leave: Callable[[SplitWatermarks], None] | None,
        is_endless: bool = False,
        is_ahead: Callable[[int], bool] | None = None,
        pause: Callable[[], None] | None = None,
    ) -> None:
        self._source = source
        self._splits = splits
        self._batch_size = batch_size
        self._enter = enter
        self._leave = leave
        self._is_endless = is_endless
        self._is_ahead = is_ahead or _never
        self._pause = pause
        self._open: dict[int, Iterator[Any]] = {}
        self._records_read = [0] * len(splits)

    def batches(self) -> Iterator[Any]:
        """The batches of all splits. Each must be processed before the next one is asked for."""
        waiting = [(split.watermark, number) for number, (_, split) in enumerate(self._splits)]
        # Splits without end that had nothing: when all have nothing, the task waits for the first of them.
        waits_s: dict[int, float] = {}
        heapq.heapify(waiting)
        turn = passed_over = 0
        try:
            while waiting:
                place, number = heapq.heappop(waiting)
                split = self._splits[number][1]
                if self._is_ahead(split.watermark):
                    turn += 1
                    heapq.heappush(waiting, (turn if self._is_endless else place, number))
                    passed_over += 1
                    # By watermark, all others are ahead, too.
                    if not self._is_endless or passed_over >= len(waiting):
                        passed_over = 0
                        if self._pause is not None:
                            self._pause()
                        yield []  # so that the task looks after its mail
                    continue
                passed_over = 0
                self._enter(split)
                batch = next(self._reader(number), None)
                if batch is None:
                    del self._open[number]
                    waits_s.pop(number, None)
                    if self._leave is not None:
                        self._leave(split)
                    continue
                values = batch.values if batch.__class__ is RecordBatch else batch
                self._records_read[number] += len(values)
                if len(values) or not self._is_endless:
                    waits_s.clear()
                    yield batch
                else:
                    waits_s[number] = getattr(batch, "wait_s", NOTHING_YET_S)
                    if len(waits_s) > len(waiting):
                        yield NothingYet(min(waits_s.values()))
                        waits_s.clear()
                turn += 1
                # A split without end may have nothing to give: the others must not wait for it.
                heapq.heappush(waiting, (turn if self._is_endless else split.watermark, number))
        finally:
            for reader in self._open.values():
                _close(reader)

    def _reader(self, number: int) -> Iterator[Any]:
        reader = self._open.get(number)
        if reader is None:
            if len(self._open) >= MOST_OPEN:
                self._close_furthest_ahead()
            split, read = self._splits[number][0], self._records_read[number]
            if read:
                split = self._source.split_after(split, read)
            reader = self._open[number] = self._source.read(split, self._batch_size)
        return reader

    def _close_furthest_ahead(self) -> None:
        """Closes the split that is needed last, if the source can continue with it later."""
        number = max(self._open, key=lambda each: (self._splits[each][1].watermark, each))
        split = self._splits[number][0]
        if self._source.split_after(split, self._records_read[number]) is not None:
            _close(self._open.pop(number))


def _never(_watermark: int) -> bool:
    return False


def _close(reader: Iterator[Any]) -> None:
    close = getattr(reader, "close", None)
    if close is not None:
        close()
