"""Records that left the chain in this turn, on their way to an exchange or a sink, as one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.operators.reduce import ABSENT
from opchain.runtime.records.columns import KEY_AND_PAIR, Columns
from opchain.runtime.records.key_counts import KeyCounts
from opchain.runtime.state.keys.key_identity import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.records.columns import Layout
    from opchain.runtime.state.keys.key_identity import KeyIdentity

COMBINED_KEYS = 131_072
"""How many keys a sender combines before it lets go: bounds memory (some 25 MB of short texts with counts), and
still catches hot keys. Letting go is expensive: what a sender forgets is sent, read and folded once more.
"""


REPEATED = 2
"""So often a key must come among those that are counted, on the average, for it to pay."""

PASSED_ON = 8 * COMBINED_KEYS
"""So many keys go on uncounted where it does not pay, until it is tried again."""


class BatchTarget(Protocol):
    """What takes a batch; it must not keep the lists."""

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,
        keys: Sequence[Any] | None,
    ) -> None:
        """Takes a batch."""


class PendingBatch:
    """Lists that generated code appends to and that `flush` hands over.

    `timestamps` is used where the target carries them, `keys` where it partitions by key.
    """

    __slots__ = (
        "columns",
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
    ) -> None:
        self.target = target
        self.values: list[Any] = []
        self.columns: Columns | None = None
        self.key_column: list[Any] | None = None
        self.timestamps: list[int | None] | None = [] if carries_timestamps else None
        self.keys: list[Any] | None = None if select_key is None else []
        self.select_key = select_key
        self.has_columns_first = False

    def append(self, value: Any, timestamp: int | None) -> None:
        """Adds one record: the interpreted way."""
        if self.select_key is not None:
            assert self.keys is not None
            self.keys.append(self.select_key(value))
        self.values.append(value)
        if self.timestamps is not None:
            self.timestamps.append(timestamp)

    def column(self, layout: Layout, position: int) -> list[Any]:
        """The list of one field of the records that are tuples and held by fields."""
        if self.columns is None:
            self.columns = Columns.empty(layout)
        return self.columns.field(position)

    def column_of_keys(self, layout: Layout, position: int) -> list[Any]:
        """Likewise, of the field that is the key."""
        self.key_column = self.column(layout, position)
        return self.key_column

    def flush(self) -> None:
        """Hands over what is here; cheap where there is nothing.

        The records of one part of a batch are all in `values`, or all in `columns`.
        """
        if self.has_columns_first:
            self.has_columns_first = False
            if self.columns:
                self._write(self.columns, self.key_column)
        if self.values:
            self._write(self.values, self.keys)
        if self.columns:
            self._write(self.columns, self.key_column)

    def end_part(self) -> None:
        """Notes which records came first, as the next part may go the other way."""
        if self.values and self.columns:
            self.flush()
        self.has_columns_first = bool(self.columns)

    def _write(self, values: list[Any] | Columns, keys: list[Any] | None) -> None:
        timestamps, count = self.timestamps, len(values)
        # Where parts of a batch went both ways, the other records' timestamps follow.
        own = timestamps if timestamps is None or len(timestamps) == count else timestamps[:count]
        self.target.write_batch(values, own, keys)
        values.clear()
        if timestamps is not None:
            del timestamps[:count]
        if keys is not None:
            keys.clear()

    def finish(self) -> None:
        """Called when the chain will emit no more."""
        self.flush()


class CombiningBatch(PendingBatch):
    """Folds records of one key into one before they are sent: batch mode's combine.

    What is sent are (key, value) pairs, since the folded value may have another key, or none.
    Generated code works on `combined` itself, whose keys are state keys by `identity`; the interpreted
    way is `append`. Of pairs that hold the key in a field, generated code may keep the other field only, in `sums`.
    """

    __slots__ = (
        "_counted",
        "_folded",
        "_passed_on",
        "_sums_are_older",
        "combined",
        "identity",
        "key_field",
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
        identity: KeyIdentity,
    ) -> None:
        super().__init__(target, carries_timestamps=carries_timestamps, select_key=select_key)
        self.identity = identity
        self.combined: dict[Any, Any] = {}
        self.sums: dict[Any, Any] = {}
        self.reduce = reduce
        self.key_field = 0
        self._counted: KeyCounts | None = None
        self._sums_are_older = True
        # How many keys were counted since the last ones were sent; how many go on uncounted until the next try.
        self._folded = 0
        self._passed_on = 0

    def keep_sums(self, key_field: int) -> dict[Any, Any]:
        """A dictionary of one field of pairs; the field `key_field` is the key."""
        self.key_field = key_field
        return self.sums

    def count_keys(self, key_field: int) -> list[Any]:
        """A list of keys, each of which adds 1 to its sum."""
        self.key_field = key_field
        self._counted = KeyCounts()
        self.sums = self._counted.counts
        return self.values

    def append(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        """Folds one record in."""
        assert self.select_key is not None
        key = self.identity.of(self.select_key(value))
        previous = self.combined.get(key, ABSENT)
        self.combined[key] = value if previous is ABSENT else self.reduce(previous, value)

    def flush(self) -> None:
        """Lets go of what was combined when there are too many keys to continue."""
        self._count()
        if self.combined and (self.sums or self._gathers):
            # A batch was combined in the other way than those before: the older results go first.
            self._send_all()
        self._sums_are_older = not self.combined
        if len(self.combined) + len(self.sums) >= COMBINED_KEYS:
            if self._folded and self._folded < REPEATED * COMBINED_KEYS:
                self._passed_on = PASSED_ON
            self._folded = 0
            self._send_all()

    def end_part(self) -> None:
        """Counts the keys of the part, in its order."""
        self.flush()

    def finish(self) -> None:
        """Sends what was combined."""
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
                self._send(Columns([self.values, ones], KEY_AND_PAIR[self.key_field]), self.values)
            else:
                self._counted.add(self.values)
                self._folded += len(self.values)
            self.values.clear()

    def _send_all(self) -> None:
        if self._counted is not None:
            self._counted.settle()
        parts = (self._send_sums, self._send_combined)
        for send in parts if self._sums_are_older else parts[::-1]:
            send()

    def _send_sums(self) -> None:
        if self.sums:
            keys = list(self.sums)
            layout = KEY_AND_PAIR[self.key_field]
            self._send(Columns([keys, list(self.sums.values())], layout), keys)
            self.sums.clear()

    def _send_combined(self) -> None:
        if self.combined:
            keys = list(map(key_of, self.combined))
            self._send(list(zip(keys, self.combined.values(), strict=True)), keys)
            self.combined.clear()

    def _send(self, records: Sequence[Any], keys: list[Any]) -> None:
        timestamps = None if self.timestamps is None else [None] * len(records)
        self.target.write_batch(records, timestamps, keys)
