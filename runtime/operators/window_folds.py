"""Records for aligned windows that their sender folds before the exchange: one partial result per key and slice.

The boundaries of all windows cut event time into slices. The records of a slice are in the same windows, and late at the
same time. So the sender may fold the records that a batch has for a key and a slice, where generated code has proved that
the window's function is associative (compiler/codegen/rules/fold_windows.py). A partial result has the number of its
records, which counters and the count of late records need. It is sent before the next watermark, like the records.

A run is a sequence of records of one slice. If records go back and forth between slices, there are more runs. So the keys
of a window keep the order of their first records.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

from opchain.runtime.records.columns import FOLDED, Columns
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.operators.pending_batch import PendingBatch

TRIED = 4096
"""The number of records after which a sender decides whether folding pays."""
REPEATED = 2
"""How many records must be folded for each sent record on average. Otherwise folding costs more than it saves."""
ADDED = ("record", "records")
"""Partial results that are one record or a list of records. The sender has omitted records that the window's function
would ignore. The function itself adds the others.
"""

PASSED_ON = 256
"""How often the records are sent as they are, before folding is tried again."""


class WindowFolds:
    """The partial results that one output has not sent yet. Generated code fills `seen` and the runs.

    Args:
        pending: The output's records that are not folded. Only one of both has records at a time.
        kinds: How partial results are merged: see `merger`.
        size: The size of the windows in milliseconds.

    Attributes:
        seen: The keys of all records, in their order.
        is_allowed: False if records are sent as they are. The digests of recorded epochs must not depend on batches.
    """

    def __init__(self, pending: PendingBatch, kinds: tuple[str, ...], size: int) -> None:
        self.seen: list[Any] = []
        self.is_allowed = True
        self._pending = pending
        self._layout = ((FOLDED, *kinds),)
        self._has_lists = kinds == ("records",)
        self._earliest, self._latest = MIN_LONG_VALUE + 2 * size, MAX_LONG_VALUE - 2 * size
        self._runs: list[tuple[int, int, dict[Any, Any]]] = []
        self._tried = self._sent = self._passed_on = 0

    def run_for(self, start: int) -> dict[Any, Any] | None:
        """The folded values of a new run of a slice, by key. None if its records are not folded."""
        if self._passed_on or not self.is_allowed or not self._earliest < start < self._latest:
            self.flush()
            return None
        if not self._runs:
            self._pending.flush()
        run: dict[Any, Any] = {}
        self._runs.append((start, len(self.seen), run))
        return run

    def end_run(self) -> None:
        """Sends all runs, because the next record cannot be folded: its key or its rank is of an unusual class."""
        self._tried += 1
        self._sent += 1
        self.flush()

    def flush(self) -> None:
        """Sends the partial results in the order of their first records."""
        if self._passed_on:
            self._passed_on -= 1
        if not self._runs:
            return
        seen, runs = self.seen, self._runs
        ends = [first for _, first, _ in runs[1:]] + [len(seen)]
        keys: list[Any] = []
        counts: list[int] = []
        held: list[Any] = []
        times: list[int | None] = []
        for (start, first, run), end in zip(runs, ends, strict=True):
            counted = Counter(seen[first:end])
            keys += counted
            counts += counted.values()
            held += run.values()
            times += [start] * len(counted)
        self._tried += len(seen)
        self._sent += sum(map(len, held)) if self._has_lists else len(keys)
        seen.clear()
        runs.clear()
        if self._tried >= TRIED:
            if self._tried < REPEATED * self._sent:
                self._passed_on = PASSED_ON
            self._tried = self._sent = 0
        lists = [keys, counts, held] if held else [keys, counts]
        self._pending.target.write_batch(Columns(lists, self._layout), times, keys)


class FoldedRecords:
    """In place of a record: a partial result of `count` records."""

    __slots__ = ("count", "held")

    def __init__(self, count: int, held: Any) -> None:
        self.count = count
        self.held = held


def _first(held: Any, _later: Any) -> Any:
    return held


def _last(_held: Any, later: Any) -> Any:
    return later


_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "count": operator.add,
    "sum": operator.add,
    "min": min,
    "max": max,
    "first": _first,
    "last": _last,
}


def merger(
    kinds: tuple[str, ...], added: Callable[[Any, Any], Any] | None = None
) -> Callable[[Any, Any], Any]:
    """The function that merges a later partial result into an earlier one.

    If the partial results are records, `added` adds a record to the contents of a window.

    >>> merger(("max",))(3, 5), merger(("tuple", "first", "sum"))(("a", 1), ("a", 2))
    (5, ('a', 3))
    """
    if kinds[0] in ADDED:
        assert added is not None
        return added if kinds == ("record",) else _adding_all(added)
    if kinds[0] != "tuple":
        return _MERGES[kinds[0]]
    merges = [_MERGES[kind] for kind in kinds[1:]]

    def merged(held: tuple[Any, ...], later: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([merge(a, b) for merge, a, b in zip(merges, held, later, strict=True)])

    return merged


def _adding_all(added: Callable[[Any, Any], Any]) -> Callable[[Any, list[Any]], Any]:
    def all_added(contents: Any, records: list[Any]) -> Any:
        return functools.reduce(added, records, contents)

    return all_added
