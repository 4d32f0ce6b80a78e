"""Records for aligned windows that their sender folds before the exchange: one partial result per key and slice.

The boundaries of all windows cut event time into slices. The records of a slice are in the same windows, and late at the
same time. So the sender may fold the records that a batch has for a key and a slice, where generated code has proved that
the window's function is associative (compiler/codegen/rules/fold_windows.py). A partial result has the number of its
records, which counters and the count of late records need. It is sent before the next watermark, like the records.

A run is a sequence of records of one slice. If records go back and forth between the slices of sliding windows, there are
more runs. So the keys of a window keep the order of their first records. A slice of tumbling windows is a window, and has
only one run. In batch mode it has several, since keys keep the order of their first records in all windows.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

from opchain.runtime.records.columns import FOLDED, Columns, Layout
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.operators.pending_batch import PendingBatch
    from opchain.runtime.operators.windows.window_state import Contents

TRIED = 1024
"""The number of records after which a sender decides whether folding pays."""
REPEATED = 4
"""How many records must be folded for each sent record on average. Otherwise folding costs more than it saves."""
ADDED = ("record", "records")
"""Partial results that are one record or a list of records. The sender has omitted records that the window's function
would ignore. The function itself adds the others.
"""

LISTED: dict[str, Callable[[Any, Any], Any]] = {"sums": operator.add, "mins": min, "maxs": max}
"""Partial results that are the list of all values, which the receiver folds one by one. The sum of floats depends on the
order of addition, and a minimum on the place of NaN.
"""

OMITTED: Layout = ((FOLDED, "omitted"),)
"""Not partial results, but the numbers of records that a sender has omitted."""

PASSED_ON = 256
"""The number of batches that are sent as they are, before folding is tried again."""


class _Trial:
    """Decides whether to reduce the records of an output before they are sent.

    Attributes:
        is_allowed: False if records are sent as they are. The digests of recorded epochs must not depend on batches.
    """

    def __init__(self) -> None:
        self.is_allowed = True
        self._tried = self._sent = self._passed_on = 0

    @property
    def _is_on(self) -> bool:
        """Whether the records of this batch are reduced."""
        return self.is_allowed and not self._passed_on

    def _has_reduced(self, records: int, sent: int) -> None:
        """Counts the records, and what was sent for them. If that saves too little, the next batches are sent as they are."""
        self._tried += records
        self._sent += sent
        if self._tried >= TRIED:
            if self._tried < REPEATED * self._sent:
                self._passed_on = PASSED_ON
            self._tried = self._sent = 0

    def _end_batch(self) -> None:
        if self._passed_on:
            self._passed_on -= 1


class WindowOmissions(_Trial):
    """Counts the records that one output omits in batch mode, because windows would ignore them.

    Generated code fills the runs: by key, the time and rank of a record that hides later ones.
    """

    def __init__(self, pending: PendingBatch) -> None:
        super().__init__()
        self._pending = pending
        self._runs: dict[int, dict[Any, Any]] = {}
        self._omitted: list[Any] = []

    def run_for(self, start: int) -> tuple[dict[Any, Any] | None, list[Any]]:
        """A slice's run, and the keys of all omitted records. The run is None if no records are omitted."""
        return self._runs.setdefault(start, {}) if self._is_on else None, self._omitted

    def flush(self) -> None:
        """Sends the number of omitted records, since the batch has ended. Receivers count them."""
        self._end_batch()
        if not self._runs:
            return
        self._runs.clear()
        sent = self._pending.size
        self._has_reduced(sent + len(self._omitted), sent)
        if self._omitted:
            counted = Counter(self._omitted)
            keys, counts = list(counted), list(counted.values())
            self._omitted.clear()
            times: list[int | None] = [None] * len(keys)
            self._pending.target.write_batch(Columns([keys, counts], OMITTED), times, keys)


class WindowFolds(_Trial):
    """The partial results that one output has not sent yet. Generated code fills the runs.

    Args:
        pending: The output's records that are not folded. Only one of both has records at a time.
        kinds: How partial results are merged: see `merger`.
        size: The size of the windows in milliseconds.
        has_one_run: Whether a slice has only one run.
    """

    def __init__(
        self, pending: PendingBatch, kinds: tuple[str, ...], size: int, *, has_one_run: bool
    ) -> None:
        super().__init__()
        self._pending = pending
        self._layout = ((FOLDED, *kinds),)
        self._has_lists = kinds == ("records",)
        self._has_one_run = has_one_run
        self._earliest, self._latest = MIN_LONG_VALUE + 2 * size, MAX_LONG_VALUE - 2 * size
        # The runs by the start of their slice, or by their number.
        self._runs: dict[int, tuple[int, dict[Any, Any], list[Any]]] = {}

    def run_for(self, start: int) -> tuple[dict[Any, Any] | None, list[Any]]:
        """The folded values of a slice's run by key, and the keys of all its records, in their order.

        The values are None if the records of the slice are not folded.
        """
        if not (self._is_on and self._earliest < start < self._latest):
            self._send()
            return None, []
        if not self._runs or self._pending.values:
            self._pending.flush()
        number = start if self._has_one_run else len(self._runs)
        _, run, seen = self._runs.setdefault(number, (start, {}, []))
        return run, seen

    def end_run(self) -> None:
        """Sends all runs, because the next record cannot be folded: its key or a value is of an unusual class."""
        self._tried += 1
        self._sent += 1
        self._send()

    def flush(self) -> None:
        """Sends the partial results, since the batch has ended."""
        self._end_batch()
        self._send()

    def _send(self) -> None:
        """Sends the partial results in the order of their first records."""
        if not self._runs:
            return
        keys: list[Any] = []
        counts: list[int] = []
        held: list[Any] = []
        times: list[int | None] = []
        for start, run, seen in self._runs.values():
            counted = Counter(seen)
            keys += counted
            counts += counted.values()
            held += run.values()
            times += [start] * len(counted)
        self._runs.clear()
        self._has_reduced(sum(counts), sum(map(len, held)) if self._has_lists else len(keys))
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


def are_contents(kinds: tuple[str, ...]) -> bool:
    """Whether the first partial result of a window is its contents. Otherwise it is merged into None."""
    return not {*ADDED, *LISTED} & {*kinds}


_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "count": operator.add,
    "sum": operator.add,
    "min": min,
    "max": max,
    "first": _first,
    "last": _last,
}


def merger(kinds: tuple[str, ...], contents: Contents) -> Callable[[Any, Any], Any]:
    """The function that merges a later partial result into the contents of a window.

    >>> from opchain.runtime.operators.windows.window_state import ReducedContents
    >>> contents = ReducedContents(max)
    >>> merger(("max",), contents)(3, 5), merger(("tuple", "first", "sum"), contents)(("a", 1), ("a", 2))
    (5, ('a', 3))
    >>> merger(("tuple", "first", "sums"), contents)(("a", 0.5), ("a", [1, 2.5]))
    ('a', 4.0)
    """
    if kinds[0] in ADDED:
        return contents.added if kinds == ("record",) else _adding_all(contents.added)
    is_tuple = kinds[0] == "tuple"
    fields = kinds[1:] if is_tuple else kinds
    if {*LISTED} & {*kinds}:
        return _folding_lists(fields, getattr(contents, "create", None), is_tuple=is_tuple)
    if not is_tuple:
        return _MERGES[kinds[0]]
    merges = [_MERGES[kind] for kind in fields]

    def merged(held: tuple[Any, ...], later: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([merge(a, b) for merge, a, b in zip(merges, held, later, strict=True)])

    return merged


def _folding_lists(
    fields: tuple[str, ...], create: Callable[[], Any] | None, *, is_tuple: bool
) -> Callable[[Any, Any], Any]:
    """Folds the values of a list one by one. Without contents, a reduce begins with its first value."""
    folds = [LISTED.get(kind) for kind in fields]

    def merged(held: Any, later: Any) -> Any:
        later = later if is_tuple else (later,)
        if held is None and create is not None:
            held = create()
        if held is None:
            found = [
                part if fold is None else functools.reduce(fold, part)
                for fold, part in zip(folds, later, strict=True)
            ]
        else:
            found = [
                a if fold is None else functools.reduce(fold, part, a)
                for fold, a, part in zip(folds, held if is_tuple else (held,), later, strict=True)
            ]
        return tuple(found) if is_tuple else found[0]

    return merged


def _adding_all(added: Callable[[Any, Any], Any]) -> Callable[[Any, list[Any]], Any]:
    def all_added(contents: Any, records: list[Any]) -> Any:
        return functools.reduce(added, records, contents)

    return all_added
