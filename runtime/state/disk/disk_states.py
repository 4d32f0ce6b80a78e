"""The five kinds of keyed state of a backend on disk: values are copied when they are read and written.

disk_entries.py caches recent values as objects. A function gets a copy, unless the value is immutable. So changing the
copy does not change the state, whether or not the value is cached. Flink: `RocksDBValueState` and similar classes,
which decode and encode at each access.

The list or the map of a key is one entry, which is read and written as a whole. Flink has an entry for each key of a
map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.records.record_copy import own_copy
from opchain.runtime.state.keyed.hash_map_states import (
    HashMapAggregatingState,
    HashMapListState,
    HashMapMapState,
    HashMapReducingState,
    HashMapValueState,
)
from opchain.runtime.state.keyed.ttl_states import (
    TtlAggregatingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class _CopyingValue:
    def value(self) -> Any:
        """A copy of the value, or None."""
        return own_copy(super().value())  # type: ignore[misc]

    def update(self, value: Any) -> None:
        """Stores a copy. None clears the state."""
        super().update(own_copy(value))  # type: ignore[misc]


class _CopyingList:
    def get(self) -> list[Any]:
        """Copies of the elements."""
        return list(map(own_copy, super().get()))  # type: ignore[misc]

    def add(self, value: Any) -> None:
        """Appends a copy."""
        super().add(own_copy(value))  # type: ignore[misc]

    def add_all(self, values: Iterable[Any]) -> None:
        """Appends copies."""
        super().add_all(list(map(own_copy, values)))  # type: ignore[misc]

    def update(self, values: Iterable[Any]) -> None:
        """Replaces all elements by copies."""
        super().update(list(map(own_copy, values)))  # type: ignore[misc]


class _CopyingMap:
    def get(self, key: Any) -> Any:
        """A copy of the value of the key, or None."""
        return own_copy(super().get(key))  # type: ignore[misc]

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of the key."""
        super().put(own_copy(key), own_copy(value))  # type: ignore[misc]

    def put_all(self, dict_value: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        """Sets all entries of a mapping, or of pairs."""
        copied = {own_copy(key): own_copy(value) for key, value in dict(dict_value).items()}
        super().put_all(copied)  # type: ignore[misc]

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Copies of all entries."""
        return ((own_copy(key), own_copy(value)) for key, value in super().items())  # type: ignore[misc]

    def keys(self) -> Iterator[Any]:
        """Copies of all keys."""
        return map(own_copy, super().keys())  # type: ignore[misc]

    def values(self) -> Iterator[Any]:
        """Copies of all values."""
        return map(own_copy, super().values())  # type: ignore[misc]


class _CopyingResult:
    def get(self) -> Any:
        """A copy of the result, or None."""
        return own_copy(super().get())  # type: ignore[misc]

    def add(self, value: Any) -> None:
        """Adds a copy. None clears the state."""
        super().add(own_copy(value))  # type: ignore[misc]


class DiskValueState(_CopyingValue, HashMapValueState[Any]):
    """One value."""


class DiskListState(_CopyingList, HashMapListState[Any]):
    """A list."""


class DiskMapState(_CopyingMap, HashMapMapState[Any, Any]):
    """A map."""


class DiskReducingState(_CopyingResult, HashMapReducingState[Any]):
    """One reduced value."""


class DiskAggregatingState(_CopyingResult, HashMapAggregatingState[Any, Any]):
    """An accumulator."""


class DiskTtlValueState(_CopyingValue, TtlValueState[Any]):
    """One value."""


class DiskTtlListState(_CopyingList, TtlListState[Any]):
    """A list whose elements expire one by one."""


class DiskTtlMapState(_CopyingMap, TtlMapState[Any, Any]):
    """A map whose entries expire one by one."""


class DiskTtlReducingState(_CopyingResult, TtlReducingState[Any]):
    """One reduced value."""


class DiskTtlAggregatingState(_CopyingResult, TtlAggregatingState[Any, Any]):
    """An accumulator."""


STATES: dict[str, Any] = {
    "ValueStateDescriptor": DiskValueState,
    "ListStateDescriptor": DiskListState,
    "MapStateDescriptor": DiskMapState,
    "ReducingStateDescriptor": DiskReducingState,
    "AggregatingStateDescriptor": DiskAggregatingState,
}
"""By the kind of the descriptor."""

TTL_STATES: dict[str, Any] = {
    "ValueStateDescriptor": DiskTtlValueState,
    "ListStateDescriptor": DiskTtlListState,
    "MapStateDescriptor": DiskTtlMapState,
    "ReducingStateDescriptor": DiskTtlReducingState,
    "AggregatingStateDescriptor": DiskTtlAggregatingState,
}
"""By the kind of the descriptor, with a time to live."""
