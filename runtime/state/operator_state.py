"""State of a subtask that has no key: list states, union list states and broadcast states.

Keys of a broadcast state are compared as Python compares them. Iterators run over a copy, in the order in which keys
were first put. The copy is used again until the state changes, because the other side may iterate for each record.
Values are not copied.

Flink: `DefaultOperatorStateBackend`, `PartitionableListState`, `HeapBroadcastState`.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.functions.state import (
    BroadcastState,
    ListState,
    OperatorStateStore,
    ReadOnlyBroadcastState,
)
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.state.declared_values import check_writes
from opchain.runtime.state.keyed.keyed_snapshot import NotingUnpickler
from opchain.runtime.state.operator_snapshot import ListMode, OperatorStateSnapshot
from opchain.runtime.types.type_variables import K, T, V

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opchain.runtime.functions.state_descriptors import (
        ListStateDescriptor,
        MapStateDescriptor,
        StateDescriptor,
    )


class SubtaskListState(ListState[T], Generic[T]):
    """A list of the subtask. `mode` says how it is redistributed when the parallelism changes."""

    def __init__(self, mode: ListMode) -> None:
        self.mode = mode
        self._elements: list[T] = []

    def get(self) -> list[T]:
        """A copy of the list."""
        return self._elements.copy()

    def add(self, value: T) -> None:
        """Appends an element."""
        self._elements.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Appends elements."""
        self._elements.extend(list(values))

    def update(self, values: Iterable[T]) -> None:
        """Replaces all elements."""
        self._elements = list(values)

    def clear(self) -> None:
        """Removes all elements."""
        self._elements = []


_READ_ONLY = (
    "broadcast state is read-only here; change it in process_broadcast_element(), which every subtask runs for the "
    "same records"
)


class ReadOnlyBroadcastMap(ReadOnlyBroadcastState[K, V], Generic[K, V]):
    """A broadcast state for the side that is not broadcast. It shows the changes of the broadcast side.

    Args:
        entries: The entries.
        copies: Lists of the entries, keys and values for iterators. The broadcast side drops them when it changes entries.
    """

    def __init__(self, entries: dict[K, V], copies: dict[str, list[Any]]) -> None:
        self._entries = entries
        self._copies = copies

    def get(self, key: K) -> V | None:
        """The value of the key, or None."""
        return self._entries.get(key)

    def contains(self, key: K) -> bool:
        """Whether the key has a value, which may be None."""
        return key in self._entries

    def items(self) -> Iterable[tuple[K, V]]:
        """All entries as of now."""
        return iter(self._copies.get("items") or self._copied("items"))

    def keys(self) -> Iterable[K]:
        """All keys as of now."""
        return iter(self._copies.get("keys") or self._copied("keys"))

    def values(self) -> Iterable[V]:
        """All values as of now."""
        return iter(self._copies.get("values") or self._copied("values"))

    def is_empty(self) -> bool:
        """Whether there are no entries."""
        return not self._entries

    def clear(self) -> None:
        """Raises StateError: changes on this side would make the state differ between subtasks."""
        raise StateError(_READ_ONLY)

    def look_ups(self) -> tuple[Any, dict[K, V], dict[str, list[Any]], Callable[[str], list[Any]]]:
        """The state itself, its entries, its copies, and the method that makes a copy."""
        return self, self._entries, self._copies, self._copied

    def _copied(self, what: str) -> list[Any]:
        found = self._copies[what] = list(getattr(self._entries, what)())
        return found

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "put_all", "remove"):
            raise AttributeError(f"{_READ_ONLY}; there is no {name}()")
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")


class BroadcastMap(ReadOnlyBroadcastMap[K, V], BroadcastState[K, V], Generic[K, V]):
    """A broadcast state for the broadcast side."""

    def put(self, key: K, value: V) -> None:
        """Sets the value of the key."""
        self._entries[key] = value
        self._copies.clear()

    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Sets all entries of a mapping, or of pairs."""
        self._entries.update(dict(dict_value))
        self._copies.clear()

    def remove(self, key: K) -> None:
        """Removes the entry of the key."""
        self._entries.pop(key, None)
        self._copies.clear()

    def clear(self) -> None:
        """Removes all entries."""
        self._entries.clear()
        self._copies.clear()

    def read_only(self) -> ReadOnlyBroadcastMap[K, V]:
        """The same state for the side that is not broadcast."""
        return ReadOnlyBroadcastMap(self._entries, self._copies)


class SubtaskStateStore(OperatorStateStore):
    """The operator state of one subtask.

    Args:
        where: The operator and its call site, for messages.
    """

    def __init__(self, where: str = "the operator") -> None:
        self._where = where
        self._lists: dict[str, SubtaskListState[Any]] = {}
        self._maps: dict[str, dict[Any, Any]] = {}
        self._broadcast: dict[str, BroadcastMap[Any, Any]] = {}
        self._descriptors: dict[tuple[str, str], StateDescriptor[Any]] = {}

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastMap[K, V]:
        """See OperatorStateStore."""
        self._require("broadcast state", state_descriptor)
        state = self._broadcast.get(state_descriptor.name)
        if state is None:
            state = BroadcastMap(self._maps.setdefault(state_descriptor.name, {}), {})
            self._broadcast[state_descriptor.name] = state
            check_writes(state, state_descriptor)
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """See OperatorStateStore."""
        return self._list(state_descriptor, ListMode.SPLIT)

    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """See OperatorStateStore."""
        return self._list(state_descriptor, ListMode.UNION)

    def get_registered_state_names(self) -> frozenset[str]:
        """See OperatorStateStore."""
        return frozenset(self._lists)

    def get_registered_broadcast_state_names(self) -> frozenset[str]:
        """See OperatorStateStore."""
        return frozenset(self._maps)

    def described_states(self) -> list[tuple[str, str, str]]:
        """The states that were registered or restored: name, kind, and type as text or empty."""
        found = [
            (name, "list" if state.mode is ListMode.SPLIT else "union list", "list state")
            for name, state in self._lists.items()
        ]
        found += [(name, "broadcast", "broadcast state") for name in self._maps]
        return [(name, kind, self._type_of(of, name)) for name, kind, of in found]

    def _type_of(self, kind: str, name: str) -> str:
        descriptor = self._descriptors.get((kind, name))
        return "" if descriptor is None else repr(descriptor.type_info)

    def snapshot(self) -> OperatorStateSnapshot:
        """All states, pickled.

        Raises:
            StateError: Something in a state can't be pickled.
        """
        return OperatorStateSnapshot(
            lists={
                name: (state.mode, [self._pickled(name, element) for element in state.get()])
                for name, state in self._lists.items()
            },
            maps={name: self._pickled(name, entries) for name, entries in self._maps.items()},
        )

    def restore(self, snapshot: OperatorStateSnapshot) -> None:
        """Restores the result of `redistribute` for this subtask. Call it before any state is requested.

        Raises:
            StateError: Something in a state can't be unpickled.
        """
        for name, (mode, elements) in snapshot.lists.items():
            state = self._lists[name] = SubtaskListState(mode)
            state.update([self._unpickled(name, element) for element in elements])
        for name, entries in snapshot.maps.items():
            self._maps[name] = self._unpickled(name, entries)

    def _list(self, descriptor: ListStateDescriptor[T], mode: ListMode) -> SubtaskListState[T]:
        self._require("list state", descriptor)
        state = self._lists.setdefault(descriptor.name, SubtaskListState(mode))
        if state.mode is not mode:
            raise StateError(
                f"{self._where}: list state '{descriptor.name}' is registered as "
                f"{state.mode.value}, but was requested as {mode.value}; use a different name "
                f"for each state"
            )
        return state

    def _require(self, kind: str, descriptor: StateDescriptor[Any]) -> None:
        known = self._descriptors.setdefault((kind, descriptor.name), descriptor)
        if known != descriptor:
            raise StateError(
                f"{self._where}: {kind} '{descriptor.name}' is registered as {known!r}, but was "
                f"requested as {descriptor!r}; use a different name for each state"
            )

    def _unpickled(self, name: str, data: bytes) -> Any:
        reader = NotingUnpickler(io.BytesIO(data))
        try:
            return reader.load()
        except Exception as error:
            of_class = "" if reader.last is None else f" of the class {reader.last}"
            raise StateError(
                f"{self._where}: operator state '{name}' can't be read: objects{of_class} can't be loaded "
                f"as they were saved ({type(error).__name__}: {error}); keep the class "
                f"importable under its old name and compatible with the saved data, or keep "
                f"plain values in state"
            ) from error

    def _pickled(self, name: str, contents: Any) -> bytes:
        try:
            return dump_records(contents)
        except Exception as error:
            raise StateError(
                f"{self._where}: operator state '{name}' can't be saved: {short_repr(contents)} can't "
                f"be pickled ({type(error).__name__}: {error}); keep plain values in state"
            ) from error
