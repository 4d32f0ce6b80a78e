"""The five kinds of keyed state with a time to live: contents are stored as (time of the last access, content).

A list state has a time per element, and a map state one per entry. Expired contents are found when they are read, and
by the configured cleanup (see state_table.py, and the backend's snapshot). Times are milliseconds of the task's clock.
An entry of time t is expired from t + ttl on.

Generated code looks up values and entries of maps itself. It calls a state for its time, for lists and whole maps, and for
an entry that is expired or that a read renews (compiler/codegen/state_access/look_ups.py).

Flink: `TtlValueState` and similar classes over `AbstractTtlDecorator`. As in Flink, a list state drops expired elements
when a read renews its elements, or when all elements are expired. `is_empty` of a map state also counts expired
entries that were not removed yet.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from opchain.runtime.functions.state_ttl import StateTtlConfig
from opchain.runtime.state.keyed.hash_map_states import HashMapState, MergingHashMapState
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.types.type_variables import IN_contra, K, OUT_co, T, V

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping

    from opchain.runtime.functions.state_descriptors import (
        AggregatingStateDescriptor,
        ReducingStateDescriptor,
    )
    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend
    from opchain.runtime.state.keyed.state_table import StateTable

    Stamped = tuple[int, Any]


NOTHING: Stamped = (MAX_LONG_VALUE, None)
"""Stands for a missing entry: it does not expire, and its content is None."""


class TimeToLive:
    """Applies one StateTtlConfig by a clock."""

    def __init__(self, config: StateTtlConfig, now: Callable[[], int]) -> None:
        self.now = now
        self.ttl_ms = config.ttl_ms
        self.reading_renews = config.update_type is StateTtlConfig.UpdateType.OnReadAndWrite
        self.shows_expired = (
            config.state_visibility is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        )

    @property
    def unchanged_ms(self) -> int:
        """How long after the time of an entry a read neither removes nor renews it."""
        return MIN_LONG_VALUE if self.reading_renews else self.ttl_ms

    def read(self, entries: MutableMapping[Any, Any], key: Any, now: int) -> Stamped | None:
        """The entry of a key if it is visible. Removes an expired entry, and renews a live one if configured."""
        entry: Stamped | None = entries.get(key)
        if entry is None:
            return None
        if entry[0] + self.ttl_ms <= now:
            del entries[key]
            return entry if self.shows_expired else None
        if self.reading_renews:
            entries[key] = (now, entry[1])
        return entry

    def visible(self, entry: Stamped | None, now: int) -> Stamped | None:
        """The entry if it is visible, else None. Changes nothing."""
        if entry is None or (entry[0] + self.ttl_ms <= now and not self.shows_expired):
            return None
        return entry

    def united(
        self, contents: Stamped, others: Stamped, merge: Callable[[Any, Any], Any]
    ) -> Stamped:
        """The merged entry of two, without expired ones."""
        now = self.now()
        seen = [entry for entry in (contents, others) if self.visible(entry, now)]
        if len(seen) > 1:
            return now, merge(contents[1], others[1])
        return (now, seen[0][1]) if seen else others

    def live(self, kind: str, contents: Any) -> Any:
        """The contents without expired parts, or None if all are expired.

        Returns the same object if nothing is expired.
        """
        oldest = self.now() - self.ttl_ms
        if kind == "ListStateDescriptor":
            elements = [entry for entry in contents if entry[0] > oldest]
            return contents if len(elements) == len(contents) else elements or None
        if kind == "MapStateDescriptor":
            entries = {key: entry for key, entry in contents.items() if entry[0] > oldest}
            return contents if len(entries) == len(contents) else entries or None
        return contents if contents[0] > oldest else None


def stamped(kind: str, contents: Any, now: int) -> Any:
    """Adds times to contents of a state that had no time to live, as if they were written now."""
    if kind == "ListStateDescriptor":
        return [(now, element) for element in contents]
    if kind == "MapStateDescriptor":
        return {key: (now, value) for key, value in contents.items()}
    return now, contents


def unstamped(kind: str, contents: Any) -> Any:
    """Removes the times from contents of a state that no longer has a time to live."""
    if kind == "ListStateDescriptor":
        return [element for _, element in contents]
    if kind == "MapStateDescriptor":
        return {key: value for key, (_, value) in contents.items()}
    return contents[1]


class _TtlState(HashMapState):
    def __init__(self, backend: KeyedStateBackend, table: StateTable, ttl: TimeToLive) -> None:
        super().__init__(backend, table)
        self._ttl = ttl
        self._now = ttl.now
        self._cleanup = table.cleanup
        self.unchanged_ms = ttl.unchanged_ms

    def accessed(self) -> int:
        """Runs the clean-up. Returns the time, which is read once an access."""
        now = self._now()
        cleanup = self._cleanup
        if cleanup is not None and now >= cleanup.idle_until:
            cleanup.run(now)
        return now


class TtlValueState(_TtlState, ValueState[T], Generic[T]):
    """One value."""

    def value(self) -> T | None:
        """The value, or None."""
        now = self.accessed()
        key = self._backend.state_key
        entry = self._entries.get(key, NOTHING)
        if entry[0] + self.unchanged_ms <= now:
            entry = self.read_at(key, now)
        content: T | None = entry[1]
        return content

    def read_at(self, state_key: Any, now: int) -> Stamped:
        """The entry of a state key if it is visible, else NOTHING."""
        return self._ttl.read(self._entries, state_key, now) or NOTHING

    def update(self, value: T | None) -> None:
        """Replaces the value; None clears it."""
        now = self.accessed()
        if value is None:
            self.clear()
        else:
            self._entries[self._backend.state_key] = (now, value)


class TtlListState(_TtlState, MergingHashMapState, ListState[T], Generic[T]):
    """A list whose elements expire one by one."""

    def get(self) -> list[T]:
        """A copy of the list."""
        return self.read_at(self._backend.state_key, self.accessed())

    def read_at(self, key: Any, now: int) -> list[T]:
        """The visible elements of a state key."""
        ttl = self._ttl
        stored = self._entries.get(key)
        if stored is None:
            return []
        changed = now - self.unchanged_ms
        elements = [element for time, element in stored if time > changed]
        if len(elements) == len(stored):
            return elements
        live = [entry for entry in stored if entry[0] + ttl.ttl_ms > now]
        if not live:
            del self._entries[key]
        elif ttl.reading_renews:
            self._entries[key] = [(now, element) for _, element in live]
        return [element for _, element in (stored if ttl.shows_expired else live)]

    def stored(self) -> list[T] | None:
        """The elements, or None if there are none."""
        return self.get() or None

    def add(self, value: T) -> None:
        """Appends an element."""
        now = self.accessed()
        self._entries.setdefault(self._backend.state_key, []).append((now, value))

    def add_all(self, values: Iterable[T]) -> None:
        """Appends elements."""
        now = self.accessed()
        elements = [(now, value) for value in values]
        if elements:
            self._entries.setdefault(self._backend.state_key, []).extend(elements)

    def update(self, values: Iterable[T]) -> None:
        """Replaces all elements."""
        now = self.accessed()
        elements = [(now, value) for value in values]
        if elements:
            self._entries[self._backend.state_key] = elements
        else:
            self.clear()

    def _unite(self, contents: list[Stamped], others: list[Stamped]) -> list[Stamped]:
        contents.extend(others)
        return contents


_FIRST, _SECOND = itemgetter(0), itemgetter(1)


class TtlMapState(_TtlState, MapState[K, V], Generic[K, V]):
    """A map whose entries expire one by one."""

    def _read(self, key: K) -> Stamped:
        now = self.accessed()
        state_key = self._backend.state_key
        entry: Stamped = self._entries.get(state_key, {}).get(key, NOTHING)
        return entry if entry[0] + self.unchanged_ms > now else self.read_at(state_key, key, now)

    def read_at(self, state_key: Any, key: K, now: int) -> Stamped:
        """The entry of a key in the map of a state key if it is visible, else NOTHING."""
        contents = self._entries.get(state_key)
        if contents is None:
            return NOTHING
        entry = self._ttl.read(contents, key, now)
        if not contents:
            del self._entries[state_key]
        return entry or NOTHING

    def get(self, key: K) -> V | None:
        """The value of the key, or None."""
        value: V | None = self._read(key)[1]
        return value

    def put(self, key: K, value: V) -> None:
        """Sets the value of the key."""
        now = self.accessed()
        contents = self._entries.setdefault(self._backend.state_key, {})
        contents[key] = (now, value)

    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Sets all entries of a mapping, or of pairs."""
        now = self.accessed()
        if entries := dict(dict_value):
            stamped = {key: (now, value) for key, value in entries.items()}
            self._entries.setdefault(self._backend.state_key, {}).update(stamped)

    def remove(self, key: K) -> None:
        """Removes the entry of the key."""
        self.accessed()
        contents = self._entries.get(self._backend.state_key)
        if contents is not None:
            contents.pop(key, None)
            if not contents:
                self.clear()

    def contains(self, key: K) -> bool:
        """Whether the key has a visible value, which may be None."""
        return self._read(key) is not NOTHING

    def items(self) -> Iterable[tuple[K, V]]:
        """All entries as of now."""
        return iter(self._read_now())

    def keys(self) -> Iterable[K]:
        """All keys as of now."""
        return map(_FIRST, self._read_now())

    def values(self) -> Iterable[V]:
        """All values as of now."""
        return map(_SECOND, self._read_now())

    def is_empty(self) -> bool:
        """Whether there are no entries at all, not even expired ones."""
        self.accessed()
        return self._backend.state_key not in self._entries

    def _read_now(self) -> list[tuple[K, V]]:
        return self.read_all(self._backend.state_key, self.accessed())

    def read_all(self, state_key: Any, now: int) -> list[tuple[K, V]]:
        """The visible entries of a state key."""
        contents = self._entries.get(state_key)
        if contents is None:
            return []
        changed = now - self.unchanged_ms
        found = [(key, value) for key, (time, value) in contents.items() if time > changed]
        if len(found) == len(contents):
            return found
        found = [
            (key, entry[1])
            for key in list(contents)
            if (entry := self._ttl.read(contents, key, now)) is not None
        ]
        if not contents:
            del self._entries[state_key]
        return found


class TtlReducingState(_TtlState, MergingHashMapState, ReducingState[T], Generic[T]):
    """One reduced value. Flink: `TtlReducingState`, `TtlReduceFunction`."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        table: StateTable,
        ttl: TimeToLive,
        descriptor: ReducingStateDescriptor[T],
    ) -> None:
        super().__init__(backend, table, ttl)
        self._reduce = descriptor.get_reduce_function().reduce

    def get(self) -> T | None:
        """The reduced value, or None."""
        now = self.accessed()
        entry = self._ttl.read(self._entries, self._backend.state_key, now)
        return None if entry is None else entry[1]

    def add(self, value: T | None) -> None:
        """Reduces a value into the state; None clears it."""
        now = self.accessed()
        if value is None:
            self.clear()
            return
        key = self._backend.state_key
        entry = self._ttl.visible(self._entries.get(key), now)
        self._entries[key] = (now, value if entry is None else self._reduce(entry[1], value))

    def _unite(self, contents: Stamped, others: Stamped) -> Stamped:
        return self._ttl.united(contents, others, self._reduce)


class TtlAggregatingState(
    _TtlState, MergingHashMapState, AggregatingState[IN_contra, OUT_co], Generic[IN_contra, OUT_co]
):
    """An accumulator. Flink: `TtlAggregatingState`, `TtlAggregateFunction`."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        table: StateTable,
        ttl: TimeToLive,
        descriptor: AggregatingStateDescriptor[IN_contra, Any, OUT_co],
    ) -> None:
        super().__init__(backend, table, ttl)
        self._function = descriptor.get_agg_function()

    def get(self) -> OUT_co | None:
        """The result of what was accumulated, or None."""
        now = self.accessed()
        entry = self._ttl.read(self._entries, self._backend.state_key, now)
        return None if entry is None else self._function.get_result(entry[1])

    def add(self, value: IN_contra | None) -> None:
        """Accumulates a value; None clears the state."""
        now = self.accessed()
        if value is None:
            self.clear()
            return
        key, function = self._backend.state_key, self._function
        entry = self._ttl.visible(self._entries.get(key), now)
        accumulator = function.create_accumulator() if entry is None else entry[1]
        self._entries[key] = (now, function.add(value, accumulator))

    def _unite(self, contents: Stamped, others: Stamped) -> Stamped:
        return self._ttl.united(contents, others, self._function.merge)


TTL_STATES: dict[str, Any] = {
    "ValueStateDescriptor": TtlValueState,
    "ListStateDescriptor": TtlListState,
    "MapStateDescriptor": TtlMapState,
    "ReducingStateDescriptor": TtlReducingState,
    "AggregatingStateDescriptor": TtlAggregatingState,
}
"""By the kind of the descriptor."""
