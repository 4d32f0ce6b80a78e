"""The records that a chain has emitted in this turn for one exchange or sink, as one batch."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.operators.window_folds import WindowFolds, WindowOmissions
from opchain.runtime.records.columns import Column, Columns, Layout, Shape, keyed_layout
from opchain.runtime.records.key_counts import KeyCounts
from opchain.runtime.state.keys.key_identity import KeyIdentity, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
        self.folds: WindowFolds | WindowOmissions | None = None

    def folded(self, kinds: tuple[str, ...], size: int, has_one_run: bool) -> WindowFolds:
        """The partial results of windows that generated code folds before this exchange."""
        if not isinstance(self.folds, WindowFolds):
            self.folds = WindowFolds(self, kinds, size, has_one_run=has_one_run)
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

    def omissions(self) -> WindowOmissions:
        """The records of windows that generated code omits before this exchange."""
        self.folds = WindowOmissions(self)
        return self.folds

    @property
    def size(self) -> int:
        """The number of pending records."""
        return len(self.values) + len(self.columns or ())

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
        previous = self.combined.get(key)
        if previous is not None:
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
        combined = len(self.combined) + len(self.sums)
        if combined >= COMBINED_KEYS:
            if self._folded and self._folded < REPEATED * combined:
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
        return self._counted is not None and self._counted.collects

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
