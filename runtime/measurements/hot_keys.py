"""The keys and key groups with the most records, counted where records are sent by key.

A task counts its first 128 records, then 1 of 17, and after 4,096 records 1 of 251. The choice is drawn with a fixed
seed, so the same batches give the same counts. In an unbounded job this begins again with each epoch. The task stores at
most 512 keys. If there are more, all counts are reduced by their median, and keys without a count are removed. This is
the algorithm of Misra and Gries, in batches as in DataSketches. So a count is an estimate, and rather too low than too
high. It costs about 12 ns per record.

Keys are identified by their text and key group. So different keys with the same text are usually counted apart, and
keys need no hash in Python.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.state.keys.key_router import KeyRouter

_STRIDES = ((4_096, 251), (128, 17), (0, 1))
"""(number of records, n): from this number of records on, one of n records is counted."""

_FOLD_EVERY = 256
_MOST_KEYS = 512
_REPORTED = 16
_MERGED = 64
_SHORT = 76
_NO_REPR: Any = object.__repr__

Counts = tuple[tuple[str, int, int], ...]
GroupCounts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class HotKeys:
    """The hottest keys and key groups of an exchange, the hottest first.

    Attributes:
        target: The number of the first task of the vertex that receives the records.
        records: The number of sent records.
        keys: The text of the key, its key group, and its estimated number of records.
        groups: The key group, and its estimated number of records.
    """

    target: int
    records: int
    keys: Counts = ()
    groups: GroupCounts = ()


class KeySample:
    """A sample of the keys that one task sends over one exchange.

    Args:
        router: Computes the key groups.
        samples: Whether only a part of many records is counted, in bounded memory. Otherwise every record is counted.
    """

    def __init__(self, router: KeyRouter, *, samples: bool = True) -> None:
        self.records = 0
        self._router = router
        self._draw = 1
        self._stride = 1
        self._until = _STRIDES[-2][0] if samples else sys.maxsize
        self._most_keys = _MOST_KEYS if samples else sys.maxsize
        self._waiting: list[Any] = []
        self._keys: dict[tuple[str, int], int] = {}
        self._groups: Counter[int] = Counter()

    def add(self, keys: Sequence[Any]) -> None:
        """Counts the keys of a batch."""
        count = len(keys)
        self.records += count
        if self.records > self._until:
            self.fold()
            self._stride = next(stride for start, stride in _STRIDES if start < self.records)
            self._until = min(
                (start for start, _ in _STRIDES if start >= self.records), default=sys.maxsize
            )
        # A linear congruential generator; its high bits are the random ones.
        self._draw = (self._draw * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        first = (self._draw >> 8) % self._stride
        if first < count:
            self._waiting += keys[first :: self._stride]
        if len(self._waiting) >= _FOLD_EVERY:
            self.fold()

    def fold(self) -> None:
        """Counts the buffered keys. Only the task's own thread may call it."""
        waiting, self._waiting = self._waiting, []
        groups = self._router.key_groups_of(waiting) if waiting else ()
        counts = self._keys
        for key, count in Counter(zip(map(_text, waiting), groups, strict=True)).items():
            counts[key] = counts.get(key, 0) + count * self._stride
        for group, count in Counter(groups).items():
            self._groups[group] += count * self._stride
        if len(counts) > self._most_keys:
            middle = median_low(counts.values())
            self._keys = {key: count - middle for key, count in counts.items() if count > middle}

    def hottest(self, target: int) -> HotKeys:
        """The hottest keys so far. Any thread may call it."""
        keys = ((text, group, count) for (text, group), count in self._keys.copy().items())
        # A key that was drawn only once or twice is in the sample by chance.
        least = 1 if self._stride == 1 else 3 * self._stride
        found = _hottest_keys((key for key in keys if key[2] >= least), _REPORTED)
        return HotKeys(target, self.records, found, _hottest_groups(self._groups.copy(), _REPORTED))


def merged_hot_keys(all_of_them: Iterable[HotKeys]) -> tuple[HotKeys, ...]:
    """Merges the hot keys of several tasks or epochs: one result per target, in their order."""
    by_target: dict[int, list[HotKeys]] = {}
    for each in all_of_them:
        by_target.setdefault(each.target, []).append(each)
    return tuple(_merged(target, by_target[target]) for target in sorted(by_target))


def _merged(target: int, parts: Sequence[HotKeys]) -> HotKeys:
    keys: Counter[tuple[str, int]] = Counter()
    groups: Counter[int] = Counter()
    for part in parts:
        for text, group, count in part.keys:
            keys[text, group] += count
        for group, count in part.groups:
            groups[group] += count
    return HotKeys(
        target,
        sum(part.records for part in parts),
        _hottest_keys(((*key, count) for key, count in keys.items()), _MERGED),
        _hottest_groups(groups, _MERGED),
    )


def _hottest_keys(counts: Iterable[tuple[str, int, int]], most: int) -> Counts:
    return tuple(sorted(counts, key=lambda key: (-key[2], key[1], key[0]))[:most])


def _hottest_groups(counts: Mapping[int, int], most: int) -> GroupCounts:
    return tuple(sorted(counts.items(), key=lambda group: (-group[1], group[0]))[:most])


def _text(key: Any) -> str:
    kind = type(key)
    if kind is int or (kind is str and len(key) <= _SHORT):
        return repr(key)
    # The default repr contains the address, which differs in each process.
    return kind.__qualname__ if kind.__repr__ == _NO_REPR else short_repr(key)
