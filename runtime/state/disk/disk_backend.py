"""Keyed state on the local disk, for state that does not fit into memory. The contract is in keyed_backend.py.

The backend is the hash map backend, but the entries of its tables are in a TableStore (disk_entries.py), and its states
copy values when they are read and written, so changing a copy does not change the state. Memory holds recently used entries, the namespaces in use, the keys that changed since the
last checkpoint, and the timers. Flink keeps RocksDB's timers in memory by default, too (`HEAP`).

The list or the map of a key is one entry, which is read and written as a whole. Flink has an entry for each key of a
map.

All backends write snapshots and changes in the format of keyed_snapshot.py. So a checkpoint of one backend can be
restored by another. This backend may write several frames per key group, one for each part of the state. A full
snapshot stays in memory as bytes until it is in a file. A restore reads one key group after the other, folds its
frames, and puts each entry at its place in the order of keys.

Flink: `EmbeddedRocksDBStateBackend`, `RocksDBKeyedStateBackend`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from opchain.runtime.mailbox.timer_service import wall_clock_ms
from opchain.runtime.records.garbage_collection import gc_paused
from opchain.runtime.records.record_copy import own_copy
from opchain.runtime.state.disk.disk_entries import RUN_BITS, DiskEntries, DiskSpaces
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keyed.hash_map_states import (
    HashMapAggregatingState,
    HashMapListState,
    HashMapMapState,
    HashMapReducingState,
    HashMapValueState,
)
from opchain.runtime.state.keyed.keyed_backend import (
    VOID,
    KeyedStateBackend,
    KeyedSubtask,
    StateBackendSpec,
)
from opchain.runtime.state.keyed.keyed_changes import KEEPS_PLACE
from opchain.runtime.state.keyed.keyed_snapshot import (
    WHOLE,
    in_order,
    pickled,
    require,
    ttl_of_snapshot,
)
from opchain.runtime.state.keyed.state_table import StateTable, StateTables
from opchain.runtime.state.keyed.ttl_states import (
    TtlAggregatingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
)
from opchain.runtime.state.keys.key_identity import KeyIdentity, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opchain.runtime.functions.state_descriptors import StateDescriptor
    from opchain.runtime.state.keyed.keyed_snapshot import Frame
    from opchain.runtime.state.keys.java_hash import Hasher
    from opchain.runtime.state.keys.key_groups import KeyGroupRange
    from opchain.runtime.state.keys.key_router import KeyRouter


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


class DiskTable(StateTable):
    """See StateTable."""

    __slots__ = ("_on_disk",)

    def __init__(
        self,
        on_disk: DiskSpaces,
        name: str,
        kind: str,
        *,
        has_ttl: bool,
        descriptor: StateDescriptor[Any] | None,
    ) -> None:
        self._on_disk = on_disk
        self.name = name
        super().__init__(name, kind, has_ttl=has_ttl, descriptor=descriptor)

    def entries(self, namespace: Any) -> DiskEntries:
        """The entries of a namespace, which StateTable only knows as a mapping."""
        found = self.space(namespace)
        assert isinstance(found, DiskEntries)
        return found

    def keys_in(self, namespace: Any) -> Iterable[Any]:
        """See StateTable."""
        return self.spaces.get(namespace, ())

    def leave(self, namespace: Any) -> None:
        """See StateTable."""
        left = self.spaces.get(namespace)
        super().leave(namespace)
        if isinstance(left, DiskEntries) and namespace not in self.spaces:
            left.evict()

    def _new_space(self) -> DiskEntries:
        return DiskEntries(self._on_disk, self.name)


class DiskTables(StateTables):
    """The states of one backend by name."""

    def __init__(self, on_disk: DiskSpaces) -> None:
        super().__init__()
        self.on_disk = on_disk

    def _new_table(
        self, name: str, kind: str, has_ttl: bool, descriptor: StateDescriptor[Any] | None
    ) -> DiskTable:
        return DiskTable(self.on_disk, name, kind, has_ttl=has_ttl, descriptor=descriptor)


if TYPE_CHECKING:
    Row = tuple[int, Any, Any, Any]
    Placed = dict[Any, tuple[int, Any]]
    """Place and contents by state key."""

_PART = 50_000


def write_disk_tables(
    tables: DiskTables, router: KeyRouter, now: Callable[[], int]
) -> dict[int, bytes]:
    """The snapshot of tables, by key group.

    Raises:
        StateError: Something in a state can't be pickled.
    """
    groups: dict[int, bytearray] = {}
    rows = ((table, row) for table in tables.values() for row in _rows(table, now))  # type: ignore[arg-type]
    while part := list(islice(rows, _PART)):
        of_part: dict[int, dict[str, tuple[str, bool, list[Row]]]] = {}
        key_groups = router.key_groups_of([row[2] for _, row in part])
        for group, (table, row) in zip(key_groups, part, strict=True):
            states = of_part.setdefault(group, {})
            states.setdefault(table.name, (table.kind, table.has_ttl, []))[2].append(row)
        for group, states in of_part.items():
            groups.setdefault(group, bytearray()).extend(pickled((WHOLE, states)))
    return {group: bytes(groups[group]) for group in sorted(groups)}


def _rows(table: DiskTable, now: Callable[[], int]) -> Iterator[Row]:
    ttl = ttl_of_snapshot(table, now)
    starts = _starts(table)
    for namespace in list(table.spaces):
        for place, state_key, contents in table.entries(namespace).rows():
            if ttl is None or (contents := ttl.live(table.kind, contents)) is not None:
                run = place >> RUN_BITS
                position = starts[run] + place - (run << RUN_BITS)
                yield position, namespace, key_of(state_key), contents


def _starts(table: DiskTable) -> dict[int, int]:
    """The first position of each run, which comes after all places of earlier runs."""
    longest: dict[int, int] = {}
    for namespace in list(table.spaces):
        for place in table.entries(namespace).places():
            run = place >> RUN_BITS
            longest[run] = max(longest.get(run, 0), place - (run << RUN_BITS) + 1)
    runs = sorted(longest)
    starts = accumulate((longest[run] for run in runs), initial=0)
    return dict(zip(runs, starts, strict=False))


def restore_empty(
    snapshots: Sequence[Mapping[int, bytes]],
    tables: DiskTables,
    key_groups: KeyGroupRange,
    identity: KeyIdentity,
    where: str,
) -> int:
    """Restores snapshots into empty tables. Returns the number of the last changes.

    Raises:
        StateError: A snapshot is not readable, or a state has another kind than before.
    """
    last = 0
    for group in sorted({group for snapshot in snapshots for group in snapshot}):
        if group not in key_groups:
            continue
        of_group = [{group: found[group]} for found in snapshots if group in found]
        states = _Group(tables, identity, where)
        for number, frames in in_order(of_group, key_groups, "a snapshot of keyed state", where):
            for _, frame in frames:
                states.take(frame)
            last = max(last, number)
        states.put(group)
    tables.on_disk.begin_run(last + 1)
    return last


class _Group:
    """The entries of one key group by state and namespace, while its frames are read."""

    def __init__(self, tables: DiskTables, identity: KeyIdentity, where: str) -> None:
        self._tables = tables
        self._identity = identity
        self._where = where
        self._found: dict[str, dict[Any, Placed]] = {}

    def take(self, frame: Frame) -> None:
        """Applies a frame to the entries."""
        of_states = frame[-1]
        for name, (kind, has_ttl, *_) in of_states.items():
            require(self._tables, name, kind, self._where, has_ttl=has_ttl)
            self._found.setdefault(name, {}).setdefault(VOID, {})
        if frame[0] == WHOLE:
            self._take_whole(of_states)
        else:
            self._take_changes(*frame[1:])

    def put(self, group: int) -> None:
        """Writes the entries to disk."""
        for name, spaces in self._found.items():
            table: DiskTable = self._tables[name]  # type: ignore[assignment]
            for namespace, placed in spaces.items():
                if placed:
                    entries = table.entries(namespace)
                    for state_key, (place, contents) in placed.items():
                        entries.put_at(state_key, place, group, contents)
        self._tables.on_disk.trim()

    def _take_whole(self, of_states: Mapping[str, Any]) -> None:
        identify = self._identity.of
        for name, (_, _, rows) in of_states.items():
            spaces = self._found[name]
            for position, namespace, key, contents in rows:
                spaces.setdefault(namespace, {})[identify(key)] = (position, contents)

    def _take_changes(self, number: int, keys: list[Any], of_states: Mapping[str, Any]) -> None:
        identify = self._identity.of
        state_keys = list(map(identify, keys))
        for name, spaces in self._found.items():
            _, _, rows, of_spaces = of_states.get(name, ("", False, [], []))
            kept = {index for _, index, _ in rows}
            for index, state_key in enumerate(state_keys):
                if index not in kept:
                    spaces[VOID].pop(state_key, None)
            by_key = [(place, state_keys[index], contents) for place, index, contents in rows]
            _place(spaces[VOID], number, by_key)
            for namespace, gone, of_space in of_spaces:
                placed = spaces.setdefault(namespace, {})
                if gone is None:
                    placed.clear()
                for key in gone or ():
                    placed.pop(identify(key), None)
                by_key = [(place, identify(key), contents) for place, key, contents in of_space]
                _place(placed, number, by_key)


def _place(placed: Placed, number: int, rows: list[tuple[int, Any, Any]]) -> None:
    for place, state_key, contents in rows:
        if place == KEEPS_PLACE and state_key in placed:
            placed[state_key] = placed[state_key][0], contents
        else:
            placed[state_key] = number << RUN_BITS | max(place, 0), contents


class TableStore(ABC):
    """An ordered table of bytes: all that a new state backend on disk has to provide.

    One subtask uses it, from one thread. It may start empty and may lose its contents when the process dies, because
    checkpoints have copies.
    """

    @abstractmethod
    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""

    @abstractmethod
    def write(self, puts: Sequence[tuple[bytes, bytes]], deletes: Sequence[bytes]) -> None:
        """Deletes keys, then puts pairs of key and value."""

    @abstractmethod
    def delete_range(self, first: bytes, end: bytes) -> None:
        """Deletes all keys from `first` (included) to `end` (excluded)."""

    @abstractmethod
    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs in ascending order, from `first` (included) to `end` (excluded), as of the call."""

    @abstractmethod
    def scan_back(self, last: bytes, until: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs in descending order, from `last` (or the next smaller key) to `until`, both included."""

    @abstractmethod
    def close(self) -> None:
        """Removes the table. A second call has no effect."""


class TableStoreBackend(StateBackendSpec):
    """A state backend whose entries are in a TableStore; everything else is shared.

    Subclasses implement `open`. They are pickled with the program.
    """

    @abstractmethod
    def open(self, subtask: KeyedSubtask) -> TableStore:
        """Opens an empty table on the executor."""

    def create(self, subtask: KeyedSubtask) -> KeyedStateBackend:
        """See StateBackendSpec."""
        return DiskKeyedStateBackend(
            subtask.max_parallelism,
            subtask.key_groups,
            store=self.open(subtask),
            identity=subtask.identity,
            hasher=subtask.hasher,
            now=subtask.now,
            where=subtask.where,
        )


class DiskKeyedStateBackend(HashMapKeyedStateBackend):
    """The keyed state of one operator's subtask; the arguments are those of HashMapKeyedStateBackend.

    Args:
        max_parallelism: The number of all key groups.
        key_groups: The key groups of this subtask; all of them if not given.
        store: The table of entries, empty; the backend closes it.
        identity: Which keys are equal.
        hasher: The hash function of the declared key type, if there is one.
        now: The clock of states with a time to live, in milliseconds.
        where: The operator and its call site, for messages.
    """

    __slots__ = ("_on_disk", "_store")

    _kinds = STATES
    _kinds_with_ttl = TTL_STATES

    def __init__(
        self,
        max_parallelism: int = 128,
        key_groups: KeyGroupRange | None = None,
        *,
        store: TableStore,
        identity: KeyIdentity | None = None,
        hasher: Hasher | None = None,
        now: Callable[[], int] = wall_clock_ms,
        where: str = "the operator",
    ) -> None:
        self._store = store
        self._on_disk = DiskSpaces(store, where)
        super().__init__(
            max_parallelism, key_groups, identity=identity, hasher=hasher, now=now, where=where
        )
        self._is_watched = True  # trims the cache of entries whenever a key is selected

    def _new_tables(self) -> DiskTables:
        return DiskTables(self._on_disk)

    def _before_selecting(self, state_key: Any) -> None:
        super()._before_selecting(state_key)
        self._on_disk.trim()

    def touch(self, keys: Iterable[Any]) -> None:
        """See KeyedStateBackend."""
        super().touch(keys)
        self._on_disk.trim()

    def close(self) -> None:
        """See KeyedStateBackend."""
        self._store.close()

    # Snapshots

    def snapshot(self) -> dict[int, bytes]:
        """See KeyedStateBackend."""
        with gc_paused():
            written = write_disk_tables(self._tables, self._router, self._now)  # type: ignore[arg-type]
        self._begin_changes(1)
        return written

    def restore(self, snapshots: Iterable[Mapping[int, bytes]]) -> None:
        """See KeyedStateBackend."""
        if not self._on_disk.is_unused:
            super().restore(snapshots)
            return
        with gc_paused():
            last = restore_empty(
                list(snapshots),
                self._tables,  # type: ignore[arg-type]
                self.key_groups,
                self.identity,
                self._where,
            )
        number = max(last + 1, self._next_number)
        self._begin_changes(number)
        self._next_number = number
