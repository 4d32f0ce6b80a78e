"""Keyed state in dictionaries. The contract is in keyed_backend.py, the layout in state_table.py.

An access costs one method call more than a dictionary (measured on one core: `value()` 36 ns, `update()` 38 ns,
`set_current_key()` 43 ns, `dict.get` 18 ns). Operators can get the dictionary itself with `table`.

The formats of snapshots and changes are in keyed_snapshot.py and keyed_changes.py. While changes are tracked, all code
that writes to the tables (backend, states, operators) records the key in `_touched` and in the tables.

Flink: `HashMapStateBackend`, `HeapKeyedStateBackend`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import value_descriptor
from opchain.runtime.mailbox.timer_service import wall_clock_ms
from opchain.runtime.records.garbage_collection import gc_paused
from opchain.runtime.state.declared_values import (
    check_writes,
    checked_type,
    functions_of,
    with_checked_function,
)
from opchain.runtime.state.keyed.hash_map_states import (
    STATES,
    WITH_FUNCTION,
    HashMapAggregatingState,
    HashMapListState,
    HashMapMapState,
    HashMapReducingState,
    HashMapState,
    HashMapValueState,
)
from opchain.runtime.state.keyed.keyed_backend import (
    VOID,
    KeyedStateBackend,
    KeyedSubtask,
    StateBackendSpec,
)
from opchain.runtime.state.keyed.keyed_changes import apply_frames, write_changes
from opchain.runtime.state.keyed.keyed_snapshot import in_order, read_tables, write_tables
from opchain.runtime.state.keyed.state_table import (
    RAW,
    IncrementalCleanup,
    StateTable,
    StateTables,
    TouchedNamespaces,
    has_ttl,
    kind_of,
)
from opchain.runtime.state.keyed.ttl_states import (
    TTL_STATES,
    TimeToLive,
    TtlListState,
    TtlMapState,
    TtlValueState,
    stamped,
    unstamped,
)
from opchain.runtime.state.keys.key_groups import KeyGroupRange
from opchain.runtime.state.keys.key_identity import KeyIdentity, key_identity, key_of
from opchain.runtime.state.keys.key_router import KeyRouter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping

    from opchain.runtime.functions.state import (
        AggregatingState,
        ListState,
        MapState,
        ReducingState,
        ValueState,
    )
    from opchain.runtime.functions.state_descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        StateDescriptor,
        ValueStateDescriptor,
    )
    from opchain.runtime.state.keys.java_hash import Hasher
    from opchain.runtime.types.type_variables import IN_contra, K, OUT_co, T, V


class _NoKey:
    """The state key while no key is current. Every access hashes the state key, so no other check is needed."""

    __slots__ = ("where",)

    def __init__(self, where: str) -> None:
        self.where = where

    def __hash__(self) -> NoReturn:
        raise StateError(
            f"{self.where} uses keyed state or timers without a current key: use them only while "
            f"a keyed record or a timer is processed; in open(), only get the state"
        )


class HashMapKeyedStateBackend(KeyedStateBackend):
    """The keyed state of one operator's subtask.

    Args:
        max_parallelism: The number of all key groups.
        key_groups: The key groups of this subtask; all of them if not given.
        identity: Which keys are equal.
        hasher: The hash function of the declared key type, if there is one.
        now: The clock of states with a time to live, in milliseconds.
        where: The operator and its call site, for messages.
    """

    __slots__ = (
        "_end_key",
        "_hasher",
        "_identify",
        "_is_watched",
        "_listeners",
        "_made_router",
        "_namespaced",
        "_next_number",
        "_no_key",
        "_now",
        "_plain",
        "_states",
        "_tables",
        "_touched",
        "_where",
        "current_key",
        "identity",
        "key_groups",
        "max_parallelism",
        "state_key",
    )

    _kinds: Mapping[str, Any] = STATES
    _kinds_with_ttl: Mapping[str, Any] = TTL_STATES

    def __init__(
        self,
        max_parallelism: int = 128,
        key_groups: KeyGroupRange | None = None,
        *,
        identity: KeyIdentity | None = None,
        hasher: Hasher | None = None,
        now: Callable[[], int] = wall_clock_ms,
        where: str = "the operator",
    ) -> None:
        self.max_parallelism = max_parallelism
        self.key_groups = key_groups or KeyGroupRange(0, max_parallelism - 1)
        self.identity = identity or key_identity()
        self._hasher = hasher
        self._now = now
        self._where = where
        self._tables = self._new_tables()
        self._made_router: KeyRouter | None = None
        # The keys that were touched since the last snapshot, or None if changes are not tracked. The number
        # of the next changes is 0 if they would be incomplete.
        self._touched: dict[Any, None] | None = None
        self._next_number = 0
        self._plain, self._identify = self.identity.plain, self.identity.of
        self._no_key = _NoKey(where)
        self.current_key: Any = None
        self.state_key: Any = self._no_key
        self._states: dict[str, Any] = {}
        self._namespaced: dict[str, Any] = {}
        # Called when a key is selected. The flag saves most backends the checks per record.
        self._listeners: list[Callable[[], None]] = []
        self._end_key: Callable[[], None] | None = None
        self._is_watched = False

    # The key

    def set_current_key(self, key: Any) -> None:
        """See KeyedStateBackend."""
        if key.__class__ in self._plain:
            state_key = key
        else:
            state_key = self._identify(key)
            key = key_of(state_key)  # of the declared type: 1 for 1.5 as INT
        if self._is_watched:
            self._before_selecting(state_key)
        self.current_key = key
        self.state_key = state_key

    def set_current_state_key(self, state_key: Any) -> None:
        """See KeyedStateBackend."""
        if self._is_watched:
            self._before_selecting(state_key)
        self.current_key = key_of(state_key)
        self.state_key = state_key

    def clear_current_key(self) -> None:
        """See KeyedStateBackend."""
        self.current_key = None
        self.state_key = self._no_key

    def on_key_selected(self, listener: Callable[[], None]) -> None:
        """See KeyedStateBackend."""
        self._listeners.append(listener)
        self._is_watched = True

    def end_each_key(self, end: Callable[[], None]) -> None:
        """See KeyedStateBackend."""
        self._end_key = end
        self._is_watched = True

    def _before_selecting(self, state_key: Any) -> None:
        if (
            self._end_key is not None
            and state_key != self.state_key
            and self.state_key is not self._no_key
        ):
            self._end_key()
            self._drop_current_key()
        if self._touched is not None:
            self._touched[state_key] = None
        for listener in self._listeners:
            listener()

    # States

    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """See KeyedStateStore."""
        state: ValueState[T] = self.state(value_descriptor(state_descriptor))
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """See KeyedStateStore."""
        state: ListState[T] = self.state(state_descriptor)
        return state

    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """See KeyedStateStore."""
        state: MapState[K, V] = self.state(state_descriptor)
        return state

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """See KeyedStateStore."""
        state: ReducingState[T] = self.state(state_descriptor)
        return state

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN_contra, Any, OUT_co]
    ) -> AggregatingState[IN_contra, OUT_co]:
        """See KeyedStateStore."""
        state: AggregatingState[IN_contra, OUT_co] = self.state(state_descriptor)
        return state

    def state(self, descriptor: StateDescriptor[Any]) -> Any:
        """See KeyedStateBackend."""
        return self._state(self._states, descriptor)

    def namespaced_state(self, descriptor: StateDescriptor[Any]) -> Any:
        """See KeyedStateBackend."""
        return self._state(self._namespaced, descriptor)

    def get_partitioned_state(self, namespace: Any, descriptor: StateDescriptor[Any]) -> Any:
        """See KeyedStateBackend."""
        state = self._state(self._namespaced, descriptor)
        state.set_current_namespace(namespace)
        return state

    def _state(self, known: dict[str, Any], descriptor: StateDescriptor[Any]) -> Any:
        name = descriptor.name
        state = known.get(name)
        if state is None:
            table = self._described_table(descriptor)
            state = known[name] = self._new_state(table, descriptor)
        elif self._tables[name].descriptor is not descriptor:
            self._tables[name].require(descriptor, self._where)
        return state

    def _described_table(self, descriptor: StateDescriptor[Any]) -> StateTable:
        name, expires = descriptor.name, has_ttl(descriptor)
        table = self._tables.get(name)
        if table is None:
            table = self._new_table(name, kind_of(descriptor), descriptor)
        else:
            table.require(descriptor, self._where)
            if table.has_ttl is not expires:
                self._convert(table)
        return table

    def _new_table(
        self, name: str, kind: str, descriptor: StateDescriptor[Any] | None = None
    ) -> StateTable:
        expires = descriptor is not None and has_ttl(descriptor)
        table = self._tables.add(name, kind, has_ttl=expires, descriptor=descriptor)
        if self._touched is not None:
            table.touched = TouchedNamespaces()
        return table

    def _convert(self, table: StateTable) -> None:
        """Adapts restored contents to a time to live that is new, or gone. Flink: `TtlAwareSerializer`."""
        kind = table.kind
        table.has_ttl = not table.has_ttl
        self._next_number = (
            0  # earlier snapshots have the other form, so changes cannot follow them
        )
        now = self._now()
        for entries in table.spaces.values():
            for key, contents in entries.items():
                entries[key] = (
                    stamped(kind, contents, now) if table.has_ttl else unstamped(kind, contents)
                )

    def _new_state(self, table: StateTable, descriptor: StateDescriptor[Any]) -> HashMapState:
        config = descriptor.ttl_config
        function = (with_checked_function(descriptor),) if table.kind in WITH_FUNCTION else ()
        if config is None or not table.has_ttl:
            return _checked(self._kinds[table.kind](self, table, *function), descriptor)
        ttl = TimeToLive(config, self._now)
        incremental = config.get_cleanup_strategies().get_incremental_cleanup_strategy()
        if incremental is not None and table.cleanup is None:
            cleanup = table.cleanup = IncrementalCleanup(
                table, ttl, incremental.get_cleanup_size(), partial(self._record_cleanup, table)
            )
            if incremental.run_cleanup_for_every_record():
                self.on_key_selected(lambda: cleanup.run(self._now()))
        return _checked(self._kinds_with_ttl[table.kind](self, table, ttl, *function), descriptor)

    # Tables and keys

    def plain_entries(
        self,
        state: Any,
        kind: str,
        declared: str | None = None,
        *,
        touches: bool = False,
        sets_keys: bool = False,
    ) -> MutableMapping[Any, Any] | None:
        """See KeyedStateBackend."""
        if (
            self._listeners
            or (self._touched is not None and not touches)
            or (self._end_key is not None and not sets_keys)
            or state.__class__ is not _PLAIN.get(kind)
            or state.declared != declared
        ):
            return None
        entries: MutableMapping[Any, Any] | None = state.entries_of(self)
        return entries

    def table(self, name: str, namespace: Any = VOID) -> MutableMapping[Any, Any]:
        """See KeyedStateBackend."""
        table = self._tables.get(name)
        if table is None:
            table = self._new_table(name, RAW)
        if (
            table.touched is not None
            and namespace is not VOID
            and self.state_key is not self._no_key
        ):
            table.touched.note(namespace, self.state_key)
        return table.space(namespace)

    def namespaces(self, name: str) -> list[Any]:
        """See KeyedStateBackend."""
        table = self._tables.get(name)
        if table is None:
            return []
        return [namespace for namespace, entries in table.spaces.items() if entries]

    def leave(self, name: str, namespace: Any) -> None:
        """See KeyedStateBackend."""
        table = self._tables.get(name)
        if table is not None:
            table.leave(namespace)

    def keys(self, name: str, namespace: Any = VOID) -> Iterator[Any]:
        """See KeyedStateBackend."""
        table = self._tables.get(name)
        entries = {} if table is None else table.spaces.get(namespace, {})
        return map(key_of, list(entries))

    def apply_to_all_keys(
        self,
        descriptor: StateDescriptor[Any],
        function: Callable[[Any, Any], object],
        namespace: Any = VOID,
    ) -> None:
        """See KeyedStateBackend."""
        state = (
            self.state(descriptor)
            if namespace is VOID
            else self.get_partitioned_state(namespace, descriptor)
        )
        for key in self.keys(descriptor.name, namespace):
            self.set_current_key(key)
            function(key, state)
        self.clear_current_key()

    def described_states(self) -> list[tuple[str, str, str]]:
        """See KeyedStateBackend."""
        return [
            (name, table.kind, "" if table.descriptor is None else repr(table.descriptor.type_info))
            for name, table in self._tables.items()
        ]

    def clear_all(self) -> None:
        """See KeyedStateBackend."""
        self._next_number = 0  # the removed keys are not recorded, so changes would be incomplete
        for table in self._tables.values():
            spaces = table.spaces
            if len(spaces) == 1:
                spaces[VOID].clear()
                continue
            for namespace in list(spaces):
                spaces[namespace].clear()
                table.leave(namespace)

    def _drop_current_key(self) -> None:
        """Drops the state of the current key, where no other key has any: clearing dictionaries takes twice as long."""
        self._next_number = 0
        for table in self._tables.values():
            if len(table.spaces) > 1:
                self.clear_all()
                return
            table.spaces[VOID].pop(self.state_key, None)

    def close(self) -> None:
        """See KeyedStateBackend."""

    def entry_count(self) -> int:
        """See KeyedStateBackend."""
        return sum(
            len(entries) for table in self._tables.values() for entries in table.spaces.values()
        )

    # Snapshots

    def _new_tables(self) -> StateTables:
        return StateTables()

    def snapshot(self) -> dict[int, bytes]:
        """See KeyedStateBackend."""
        with gc_paused():
            written = write_tables(self._tables.values(), self._router, self._now)
        self._begin_changes(1)
        return written

    def restore(self, snapshots: Iterable[Mapping[int, bytes]]) -> None:
        """See KeyedStateBackend."""
        last = 0
        with gc_paused():
            frames = in_order(snapshots, self.key_groups, "a snapshot of keyed state", self._where)
            for last, of_number in frames:
                if last == 0:
                    read_tables(of_number, self._tables, self.identity, self._where)
                else:
                    apply_frames(of_number, self._tables, self.identity, self._router, self._where)
        number = max(last + 1, self._next_number)
        self._begin_changes(number)
        self._next_number = number  # also if tracking begins only after this restore

    # Changes

    def track_changes(self) -> None:
        """See KeyedStateBackend."""
        if self._touched is None:
            self._touched = {}
            for table in self._tables.values():
                table.touched = TouchedNamespaces()
        self._is_watched = True

    @property
    def tracks_changes(self) -> bool:
        """See KeyedStateBackend."""
        return self._touched is not None and self._next_number > 0

    def touch(self, keys: Iterable[Any]) -> None:
        """See KeyedStateBackend."""
        if self._touched is not None:
            given = list(keys)
            if not self.identity.plain.issuperset(map(type, given)):
                given = list(map(self.identity.of, given))
            self._touched.update(dict.fromkeys(given))

    def touching(self, due: Iterable[tuple[int, Any, Any]]) -> Iterator[tuple[int, Any, Any]]:
        """See KeyedStateBackend."""
        assert self._touched is not None
        for timer in due:
            self._touched[timer[2]] = None
            yield timer

    def touched_keys(self) -> dict[Any, None]:
        """See KeyedStateBackend."""
        return self._touched or {}

    def write_to(self, name: str, namespaces: Iterable[Any]) -> None:
        """See KeyedStateBackend."""
        touched = self._tables[name].touched
        if touched is not None:
            touched.written_to.update(dict.fromkeys(namespaces))

    def drop(self, name: str, namespace: Any) -> None:
        """See KeyedStateBackend."""
        table = self._tables[name]
        entries = table.space(namespace)
        if table.touched is not None:
            table.touched.note_dropped(namespace, self.key_groups_of(entries))
        entries.clear()
        table.leave(namespace)

    def key_groups_of(self, state_keys: Collection[Any]) -> Iterable[int]:
        """See KeyedStateBackend."""
        if len(state_keys) >= len(self.key_groups):
            return self.key_groups
        return self._router.key_groups_of(list(map(key_of, state_keys)))

    def snapshot_changes(self) -> dict[int, bytes]:
        """See KeyedStateBackend."""
        if self._touched is None or not self.tracks_changes:
            raise StateError(
                f"{self._where}: changes of keyed state were requested, but are not tracked; "
                f"call track_changes(), and take a full snapshot first"
            )
        number = self._next_number
        with gc_paused():
            written = write_changes(self._tables.values(), self._touched, number, self._router)
        self._begin_changes(number + 1)
        return written

    @property
    def _router(self) -> KeyRouter:
        """Computes the key groups of keys. It is created on first use, because most tasks take no snapshot."""
        if self._made_router is None:
            self._made_router = KeyRouter(self.max_parallelism, 1, self._hasher)
        return self._made_router

    def _begin_changes(self, number: int) -> None:
        """Records later changes for the frames of this number."""
        if self._touched is None:
            self._next_number = 0
            return
        self._next_number = number
        self._touched = {}
        for table in self._tables.values():
            if table.touched is None:
                table.touched = TouchedNamespaces()
            table.touched.clear()

    def _record_cleanup(self, table: StateTable, namespace: Any, state_key: Any) -> None:
        if self._touched is None:
            return
        if namespace is VOID:
            self._touched[state_key] = None
        elif table.touched is not None:
            table.touched.note(namespace, state_key)


def _checked(state: HashMapState, descriptor: StateDescriptor[Any]) -> HashMapState:
    check_writes(state, descriptor)
    state.declared = checked_type(descriptor.type_info)
    if kind_of(descriptor) in WITH_FUNCTION:
        state.functions = functions_of(descriptor)
    return state


_PLAIN: dict[str, Any] = {
    "value": HashMapValueState,
    "list": HashMapListState,
    "map": HashMapMapState,
    "reducing": HashMapReducingState,
    "aggregating": HashMapAggregatingState,
    "expiring value": TtlValueState,
    "expiring list": TtlListState,
    "expiring map": TtlMapState,
}
"""The states whose methods generated code replaces by look-ups, by kind."""


@dataclass(frozen=True, slots=True)
class HashMapBackend(StateBackendSpec):
    """`state.backend.type: hashmap`."""

    def create(self, subtask: KeyedSubtask) -> KeyedStateBackend:
        """See StateBackendSpec."""
        return HashMapKeyedStateBackend(
            subtask.max_parallelism,
            subtask.key_groups,
            identity=subtask.identity,
            hasher=subtask.hasher,
            now=subtask.now,
            where=subtask.where,
        )
