"""Counts how often each key comes: by numpy if keys are in arrays, by Arrow if there are many keys.

A sender that combines pairs such as (word, 1) only counts how often each key occurs. A dictionary with many keys does
not fit into the processor's cache, so most look-ups wait for memory. Arrow counts in a much smaller table. So if there
are many keys, and pyarrow is installed, up to a million keys are collected and then counted by Arrow.

Measured with 3,000,000 texts in random order: of 100,000 different texts 0.7 s collected and 2.4 s with a dictionary;
of 1,000 different texts 0.15 s either way. Words with the frequencies of a natural language: 1.7 times as fast with a
million at a time, 1.4 times with half a million. If most texts are different, collecting stops, as it does not pay.

Arrays of ints, which generated code fills with numpy, are collected from the start. numpy counts a million ints below a
thousand in 5 ms, a dictionary in 40 ms. If ints are far apart, they are counted like other keys.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, Any

from opchain.runtime.records.arrays import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

KEYS_BEFORE_ARROW = 1_000_000
"""The number of keys before pyarrow is loaded, which takes 0.1 s. pyarrow and the collected keys need 120 MB."""
KEYS_IN_CACHE = 8_192
"""The number of different keys that do not fit into the processor's cache."""
MOST_KEYS = 1_048_576
MOST_BYTES = 1 << 24
"""The most keys and bytes that are collected for Arrow before they are counted."""
MOST_INTS = 262_144
"""The most ints that are collected for numpy before they are counted."""
_FEWEST_REPEATS = 2
"""How often a key must occur on average among the collected keys. Otherwise collecting costs more than it saves."""


class KeyCounts:
    """Counts keys that are all of one exact type, int or str.

    Attributes:
        counts: How often each key came, in the order of first appearance. Keys collected since the last `settle` are
            not in it.
    """

    __slots__ = ("_arrow", "_bytes", "_collected", "_columns", "_ints", "_seen", "counts")

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self._arrow: Any = None
        self._seen = 0
        self._columns: list[pa.Array[Any]] = []
        self._collected = 0
        self._bytes = 0
        self._ints = array("q")

    def add(self, keys: Sequence[Any]) -> None:
        """Counts a batch now, or collects it for `settle`."""
        if isinstance(keys, array) and self._arrow is not False:
            self._ints.extend(keys)
            if len(self._ints) >= MOST_INTS:
                self._count_ints()
            return
        self._count_ints()
        self._add(keys)

    @property
    def collects(self) -> bool:
        """Whether keys were collected since the last `settle`."""
        return bool(self._ints or self._columns)

    def settle(self) -> None:
        """Counts the collected keys."""
        self._count_ints()
        self._count_columns()

    def _count_ints(self) -> None:
        """Counts the collected arrays, which came after the collected columns."""
        if not self._ints:
            return
        ints, self._ints = self._ints, array("q")
        found = counted(ints)
        if found is None:
            self._add(ints)
        else:
            self._count_columns()
            self._merge(*found, len(ints))

    def _count_columns(self) -> None:
        if self._columns:
            found = self._arrow.chunked_array(self._columns).value_counts()
            keys, numbers = (column.to_pylist() for column in found.flatten())
            self._merge(keys, numbers, self._collected)
            self._columns.clear()
            self._collected = self._bytes = 0

    def _merge(self, keys: list[Any], numbers: list[int], collected: int) -> None:
        """Adds how often keys occur in what was collected."""
        counts, get = self.counts, self.counts.get
        for key, number in zip(keys, numbers, strict=True):
            counts[key] = get(key, 0) + number
        if len(keys) * _FEWEST_REPEATS > collected:
            self._arrow = False

    def _add(self, keys: Sequence[Any]) -> None:
        column = self._column(keys)
        if column is None:
            self._count_columns()
            self.counts.update(keys)
            return
        self._columns.append(column)
        self._collected += len(column)
        self._bytes += column.nbytes
        if self._collected >= MOST_KEYS or self._bytes >= MOST_BYTES:
            self._count_columns()

    def _column(self, keys: Sequence[Any]) -> pa.Array[Any] | None:
        """The keys as an Arrow array; None if they must be counted one by one."""
        if self._arrow is None:
            self._seen += len(keys)
            if self._seen < KEYS_BEFORE_ARROW or len(self.counts) < KEYS_IN_CACHE:
                return None
            self._arrow = _pyarrow() or False
        if not self._arrow:
            return None
        arrow = self._arrow
        try:
            if isinstance(keys, array):
                return arrow.Array.from_buffers(
                    arrow.int64(), len(keys), [None, arrow.py_buffer(keys)]
                )
            return arrow.array(
                keys, arrow.large_string() if keys[0].__class__ is str else arrow.int64()
            )
        except (arrow.ArrowException, OverflowError, UnicodeError):
            return None  # an int of more than 64 bits, a text with half a character


def _pyarrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - it may be missing, and takes time
    except ImportError:
        return None
    return pa
