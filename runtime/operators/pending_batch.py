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

    __slots__ = ("keys", "select_key", "target", "timestamps", "values")

    def __init__(
        self,
        target: BatchTarget,
        *,
        carries_timestamps: bool,
        select_key: Callable[[Any], Any] | None,
    ) -> None:
        self.target = target
        self.values: list[Any] | Columns = []
        self.timestamps: list[int | None] | None = [] if carries_timestamps else None
        self.keys: list[Any] | None = None if select_key is None else []
        self.select_key = select_key

    def append(self, value: Any, timestamp: int | None) -> None:
        """Adds one record: the interpreted way."""
        assert isinstance(self.values, list)
        if self.select_key is not None:
            assert self.keys is not None
            self.keys.append(self.select_key(value))
        self.values.append(value)
        if self.timestamps is not None:
            self.timestamps.append(timestamp)

    def column(self, layout: Layout, position: int, *, is_key: bool) -> list[Any]:
        """The list of one field of the records, which are tuples that are held by fields from now on."""
        if not isinstance(self.values, Columns):
            self.values = Columns.empty(layout)
        column = self.values.field(position)
        if is_key:
            self.keys = column
        return column

    def flush(self) -> None:
        """Hands over what is here; cheap where there is nothing."""
        values = self.values
        if values:
            self.target.write_batch(values, self.timestamps, self.keys)
            values.clear()
            if self.timestamps is not None:
                self.timestamps.clear()
            if self.keys is not None:
                self.keys.clear()

    def finish(self) -> None:
        """Called when the chain will emit no more."""
        self.flush()


class CombiningBatch(PendingBatch):
    """Folds records of one key into one before they are sent: batch mode's combine.

    What is sent are (key, value) pairs, since the folded value may have another key, or none.
    Generated code works on `combined` itself, whose keys are state keys by `identity`; the interpreted
    way is `append`. Of pairs that hold the key in a field, generated code may keep the other field only.
    """

    __slots__ = ("_counted", "combined", "identity", "key_field", "reduce")

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
        self.reduce = reduce
        self.key_field: int | None = None
        self._counted: KeyCounts | None = None

    def keep_sums(self, key_field: int) -> dict[Any, Any]:
        """Has `combined`, which it gives, hold one field of pairs; the field `key_field` is the key."""
        self.key_field = key_field
        return self.combined

    def count_keys(self, key_field: int) -> list[Any]:
        """A list of keys, each of which adds 1 to its sum."""
        self.key_field = key_field
        self._counted = KeyCounts()
        self.combined = self._counted.counts
        assert isinstance(self.values, list)
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
        if len(self.combined) >= COMBINED_KEYS:
            self._hand_over()

    def finish(self) -> None:
        """Sends what was combined."""
        self._count()
        if self._counted is not None:
            self._counted.settle()
        self._hand_over()

    def _count(self) -> None:
        if self.values:
            assert self._counted is not None
            self._counted.add(self.values)
            self.values.clear()

    def _hand_over(self) -> None:
        combined = self.combined
        if combined:
            timestamps = None if self.timestamps is None else [None] * len(combined)
            if self.key_field is not None:
                keys = list(combined)
                sums = [keys, list(combined.values())]
                records: Sequence[Any] = Columns(sums, KEY_AND_PAIR[self.key_field])
            else:
                keys = list(map(key_of, combined))
                records = list(zip(keys, combined.values(), strict=True))
            self.target.write_batch(records, timestamps, keys)
            combined.clear()
