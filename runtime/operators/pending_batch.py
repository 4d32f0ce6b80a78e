"""The records that a chain has emitted in this turn for one exchange or sink, as one batch.

A sender that combines pairs such as (word, 1) only counts how often each key occurs. A dictionary with many keys does
not fit into the processor's cache, so most look-ups wait for memory. Arrow counts in a much smaller table. So if there
are many keys, and pyarrow is installed, up to a million pairs are gathered and then counted by Arrow.

Measured with 3,000,000 texts in random order: of 100,000 different texts 0.7 s gathered and 2.4 s with a dictionary;
of 1,000 different texts 0.15 s either way. Words with the frequencies of a natural language: 1.7 times as fast with a
million at a time, 1.4 times with half a million. If most texts are different, gathering stops, as it does not pay.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.operators.reduce import ABSENT
from opchain.runtime.operators.window_folds import WindowFolds
from opchain.runtime.records.columns import Column, Columns, Layout, Shape, keyed_layout
from opchain.runtime.state.keys.key_identity import KeyIdentity, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa


SEEN = 1_000_000
"""The number of keys before pyarrow is loaded, which takes 0.1 s. pyarrow and the collected keys need 120 MB."""
MANY = 8_192
"""The number of different keys that do not fit into the processor's cache."""
GATHERED = 1_048_576
GATHERED_BYTES = 1 << 24
"""The most keys and bytes that are collected before they are counted."""
_REPEATED = 2
"""How often a key must occur on average among the collected keys. Otherwise collecting costs more than it saves."""


class KeyCounts:
    """Counts keys that are all of one exact type, int or str.

    Attributes:
        counts: How often each key came, in the order of first appearance. Keys collected since the last `settle` are
            not in it.
    """

    __slots__ = ("_arrow", "_bytes", "_columns", "_gathered", "_seen", "counts")

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self._arrow: Any = None
        self._seen = 0
        self._columns: list[pa.Array[Any]] = []
        self._gathered = 0
        self._bytes = 0

    def add(self, keys: Sequence[Any]) -> None:
        """Counts a batch now, or collects it for `settle`."""
        column = self._column(keys)
        if column is None:
            self.settle()
            self.counts.update(keys)
            return
        self._columns.append(column)
        self._gathered += len(column)
        self._bytes += column.nbytes
        if self._gathered >= GATHERED or self._bytes >= GATHERED_BYTES:
            self.settle()

    @property
    def gathers(self) -> bool:
        """Whether keys were collected since the last `settle`."""
        return bool(self._columns)

    def settle(self) -> None:
        """Counts the collected keys."""
        if not self._columns:
            return
        found = self._arrow.chunked_array(self._columns).value_counts()
        counts, get = self.counts, self.counts.get
        for key, number in zip(*(column.to_pylist() for column in found.flatten()), strict=True):
            counts[key] = get(key, 0) + number
        if len(found) * _REPEATED > self._gathered:
            self._arrow = False
        self._columns.clear()
        self._gathered = self._bytes = 0

    def _column(self, keys: Sequence[Any]) -> pa.Array[Any] | None:
        """The keys as an Arrow array; None if they must be counted one by one."""
        if self._arrow is None:
            self._seen += len(keys)
            if self._seen < SEEN or len(self.counts) < MANY:
                return None
            self._arrow = _pyarrow() or False
        if not self._arrow:
            return None
        arrow = self._arrow
        try:
            if isinstance(keys, array):
                return arrow.Array.from_buffers(
                    arrow.int64(), len(keys), [None, arrow.py_buffer(keys[:])]
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


COMBINED_KEYS = 131_072
"""The number of keys that a sender combines before it sends them. It bounds the memory (25 MB for short texts with
counts), and is large enough for hot keys. Sending early is expensive: if the key comes again, its partial result is
sent, read and combined a second time.
"""


REPEATED = 2
"""How often a key must occur on average among the combined keys. Otherwise combining costs more than it saves."""

PASSED_ON = 8 * COMBINED_KEYS
"""The number of keys that are sent without combining, before combining is tried again."""


class BatchTarget(Protocol):
    """Takes batches. It must not keep the lists."""

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,
        keys: Sequence[Any] | None,
    ) -> None:
        """Takes a batch."""


class PendingBatch:
    """Lists that generated code appends to. `flush` sends them.

    `timestamps` is used where the target carries them, `keys` where it partitions by key. With `carries_key`, the values
    are (key, record) pairs.
    """

    __slots__ = (
        "carries_key",
        "columns",
        "folds",
        "has_columns_first",
        "key_column",
        "keys",
        "select_key",
        "target",
        "timestamps",
        "values",
    )

    def __init__(
        self,
        target: BatchTarget,
        *,
        carries_timestamps: bool,
        select_key: Callable[[Any], Any] | None,
        carries_key: bool = False,
    ) -> None:
        self.target = target
        self.values: Column = []
        self.columns: Columns | None = None
        self.key_column: Column | None = None
        self.timestamps: list[int | None] | None = [] if carries_timestamps else None
        self.keys: list[Any] | None = None if select_key is None else []
        self.select_key = select_key
        self.carries_key = carries_key
        self.has_columns_first = False
        self.folds: WindowFolds | None = None

    def folded(self, kinds: tuple[str, ...], size: int, step: int) -> WindowFolds:
        """The partial results of windows that generated code folds before this exchange."""
        if self.folds is None:
            self.folds = WindowFolds(self, kinds, size, step)
        return self.folds

    def append(self, value: Any, timestamp: int | None) -> None:
        """Adds one record, for interpreted operators."""
        if self.select_key is not None:
            assert self.keys is not None
            key = self.select_key(value)
            self.keys.append(key)
            if self.carries_key:
                value = (key, value)
        self.values.append(value)
        if self.timestamps is not None:
            self.timestamps.append(timestamp)

    def column(
        self,
        layout: Layout,
        position: int,
        shape: Shape | None = None,
        *,
        is_key: bool = False,
        is_array: bool = False,
    ) -> Column:
        """The list of one field, for records that are held by fields; an array if its values are ints of 64 bits.

        If one list `is_key`, it has their keys. Otherwise `keys` has them.
        """
        if self.columns is None:
            self.columns = Columns.empty(layout if shape is None else (*layout, shape.entry))
            self.key_column = self.keys
        if is_array:
            self.columns.use_array(position)
        found = self.columns.field(position)
        if is_key:
            self.key_column = found
        return found

    def flush(self) -> None:
        """Sends the pending records. Cheap if there are none.

        The records of one part of a batch are all in `values`, or all in `columns`.
        """
        if self.folds is not None:
            self.folds.flush()
        if self.has_columns_first:
            self.has_columns_first = False
            if self.columns:
                self._write(self.columns, self.key_column)
        if self.values:
            self._write(self.values, self.keys)
        if self.columns:
            self._write(self.columns, self.key_column)

    def end_part(self) -> None:
        """Notes the order of records, because the next part may be held in the other form."""
        if self.values and self.columns:
            self.flush()
        self.has_columns_first = bool(self.columns)

    def _write(self, values: Column | Columns, keys: Column | None) -> None:
        timestamps, count = self.timestamps, len(values)
        # If parts of a batch were held in both forms, the timestamps and keys of the other records follow.
        own = timestamps if timestamps is None or len(timestamps) == count else timestamps[:count]
        own_keys = keys if keys is None or len(keys) == count else keys[:count]
        self.target.write_batch(values, own, own_keys)
        if isinstance(values, Columns):
            values.clear()
        else:
            del values[:]
        if timestamps is not None:
            del timestamps[:count]
        if keys is not None:
            del keys[:count]

    def finish(self) -> None:
        """Called after the chain has emitted its last record."""
        self.flush()


class CombiningBatch(PendingBatch):
    """Combines the records of a key into one record before they are sent, in batch mode.

    The combined value may have another key, or none. So (key, value) pairs are sent. Generated code updates
    `combined`, which has state keys; interpreted operators call `append`. Generated code may keep only the fields that
    vary, in `sums`: one value for each key, or a tuple. They are sent as columns.
    """

    __slots__ = (
        "_counted",
        "_folded",
        "_layout",
        "_passed_on",
        "_stores_tuples",
        "_sums_are_older",
        "combined",
        "first",
        "identity",
        "reduce",
        "sums",
    )

    def __init__(
        self,
        target: BatchTarget,
        *,
        carries_timestamps: bool,
        select_key: Callable[[Any], Any],
        reduce: Callable[[Any, Any], Any],
        first: Callable[[Any], Any] | None,
        identity: KeyIdentity,
    ) -> None:
        super().__init__(target, carries_timestamps=carries_timestamps, select_key=select_key)
        self.identity = identity
        self.combined: dict[Any, Any] = {}
        self.sums: dict[Any, Any] = {}
        self.reduce, self.first = reduce, first
        self._layout: Layout = ()
        self._stores_tuples = False
        self._counted: KeyCounts | None = None
        self._sums_are_older = True
        # The keys counted since the last send, and the keys that are still sent without combining.
        self._folded = 0
        self._passed_on = 0

    def keep_sums(self, layout: tuple[Any, ...], shape: Shape | None = None) -> dict[Any, Any]:
        """A dictionary from state keys to the stored fields of records. Their layout is as in `stored_records`."""
        numbers = {"key": 0, "sum": 1}
        self._stores_tuples = "sum" not in layout
        self._layout = keyed_layout(
            [
                field + 1 if isinstance(field, int) else numbers.get(field, field)
                for field in layout
            ],
            shape,
        )
        return self.sums

    def count_keys(
        self, layout: tuple[Any, ...], shape: Shape | None = None, *, is_array: bool = False
    ) -> Column:
        """A list of keys, or an array. Each entry adds 1 to the sum of its key."""
        self.keep_sums(layout, shape)
        if is_array:
            self.values = array("q")
        self._counted = KeyCounts()
        self.sums = self._counted.counts
        return self.values

    def append(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        """Combines one record."""
        assert self.select_key is not None
        key = self.identity.of(self.select_key(value))
        previous = self.combined.get(key, ABSENT)
        if previous is not ABSENT:
            value = self.reduce(previous, value)
        elif self.first is not None:
            value = self.first(value)
        self.combined[key] = value

    def flush(self) -> None:
        """Emits the combined records if there are too many keys to continue."""
        self._count()
        if self.combined and (self.sums or self._gathers):
            # Earlier batches were combined in the other form. Their results are sent first.
            self._send_all()
        self._sums_are_older = not self.combined
        if len(self.combined) + len(self.sums) >= COMBINED_KEYS:
            if self._folded and self._folded < REPEATED * COMBINED_KEYS:
                self._passed_on = PASSED_ON
            self._folded = 0
            self._send_all()

    def end_part(self) -> None:
        """Counts the keys of the part, in its order. The clock decides where a part ends, so nothing is sent here."""
        self._count()

    def finish(self) -> None:
        """Sends the combined records."""
        self._count()
        self._send_all()

    @property
    def _gathers(self) -> bool:
        return self._counted is not None and self._counted.gathers

    def _count(self) -> None:
        if self.values:
            assert self._counted is not None
            if self._passed_on > 0 and not self.combined:
                self._passed_on -= len(self.values)
                ones = [1] * len(self.values)
                self._send(Columns([self.values, ones], self._layout), self.values)
            else:
                self._counted.add(self.values)
                self._folded += len(self.values)
            del self.values[:]

    def _send_all(self) -> None:
        if self._counted is not None:
            self._counted.settle()
        parts = (self._send_sums, self._send_combined)
        for send in parts if self._sums_are_older else parts[::-1]:
            send()

    def _send_sums(self) -> None:
        if self.sums:
            keys = list(map(key_of, self.sums))
            stored = list(self.sums.values())
            lists = map(list, zip(*stored, strict=True)) if self._stores_tuples else [stored]
            self._send(Columns([keys, *lists], self._layout), keys)
            self.sums.clear()

    def _send_combined(self) -> None:
        if self.combined:
            keys = list(map(key_of, self.combined))
            self._send(list(zip(keys, self.combined.values(), strict=True)), keys)
            self.combined.clear()

    def _send(self, records: Sequence[Any], keys: Column) -> None:
        timestamps = None if self.timestamps is None else [None] * len(records)
        self.target.write_batch(records, timestamps, keys)
