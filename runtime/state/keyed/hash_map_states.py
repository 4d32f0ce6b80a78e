"""The five kinds of keyed state over dictionaries. Each uses the current key of its backend.

An access is one method call and one look-up. Reading a list state returns a copy of the list, and iterators of a map
state run over a copy. So a function may keep the result, and may change the state while it iterates. Values are not
copied.

As in PyFlink, None can be an element of a list state and a value of a map state. Writing None to a value, reducing or
aggregating state clears it. Keys of a map state are compared as Python compares them.

Flink: `HeapValueState`, `HeapListState`, `HeapMapState`, `HeapReducingState`, `HeapAggregatingState`.
"""

from __future__ import annotations

from abc import abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import StateError
from opchain.runtime.functions.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from opchain.runtime.state.keyed.keyed_backend import VOID, KeyedStateBackend
from opchain.runtime.types.type_variables import IN_contra, K, OUT_co, T, V

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping

    from opchain.runtime.functions.state_descriptors import (
        AggregatingStateDescriptor,
        ReducingStateDescriptor,
    )
    from opchain.runtime.state.keyed.state_table import StateTable


class HashMapState:
    """The part that all kinds share. `_entries` is the dictionary of the current namespace.

    `declared` is the type that writes are checked against, as text, or None if writes are not checked. `functions` has
    what generated code calls instead of the methods of a reducing or aggregating state (see `functions_of`).
    """

    declared: str | None = None
    functions: Mapping[str, Callable[..., Any]] = MappingProxyType({})

    def __init__(self, backend: KeyedStateBackend, table: StateTable) -> None:
        self._backend = backend
        self._table = table
        self._namespace: Any = VOID
        self._entries = table.space(VOID)

    def set_current_namespace(self, namespace: Any) -> MutableMapping[Any, Any]:
        """Makes a namespace the current one of this state. Returns its dictionary."""
        table = self._table
        if table.touched is not None and namespace is not VOID:
            table.touched.note(namespace, self._backend.state_key)
        if namespace is self._namespace:
            return self._entries
        left = self._namespace
        self._namespace = table.current = namespace
        if not self._entries:
            table.leave(left)
        self._entries = table.space(namespace)
        return self._entries

    def entries_of(self, backend: KeyedStateBackend) -> MutableMapping[Any, Any] | None:
        """The dictionary, if the state belongs to this backend and its namespace is VOID."""
        is_plain = self._backend is backend and self._namespace is VOID
        return self._entries if is_plain else None

    def clear(self) -> None:
        """Removes the contents of the current key and namespace."""
        # Not `pop`: on an empty dictionary it does not hash the key, so it would miss that no key is current.
        key = self._backend.state_key
        if key in self._entries:
            del self._entries[key]

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Refuses: see MergingHashMapState."""
        windows = ", ".join(map(repr, sources))
        raise StateError(
            f"state '{self._table.name}' is of a {self._table.kind}, whose contents can't be merged "
            f"when windows merge ({windows} into {target!r}); use a list, reducing or aggregating state"
        )


class MergingHashMapState(HashMapState):
    """A kind whose contents can be merged. Flink: `AbstractHeapMergingState`."""

    @abstractmethod
    def _unite(self, contents: Any, others: Any) -> Any:
        """The merged contents, in this order. May change and return the first."""

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Moves the contents of the sources into the target, for the current key.

        As in Flink, the sources are merged first, in their order, and the result is then merged into the target. The
        target becomes the current namespace.
        """
        key, touched = self._backend.state_key, self._table.touched
        merged = None
        for source in sources:
            if touched is not None:
                touched.note(source, key)
            entries = self._table.spaces.get(source)
            contents = None if entries is None else entries.pop(key, None)
            if contents is None:
                continue
            self._table.leave(source)
            merged = contents if merged is None else self._unite(merged, contents)
        self.set_current_namespace(target)
        if merged is not None:
            contents = self._entries.get(key)
            self._entries[key] = merged if contents is None else self._unite(contents, merged)


class HashMapValueState(HashMapState, ValueState[T], Generic[T]):
    """One value."""

    def value(self) -> T | None:
        """The value, or None."""
        return self._entries.get(self._backend.state_key)

    def update(self, value: T | None) -> None:
        """Replaces the value; None clears it."""
        if value is None:
            self.clear()
        else:
            self._entries[self._backend.state_key] = value


class HashMapListState(MergingHashMapState, ListState[T], Generic[T]):
    """A list."""

    def get(self) -> list[T]:
        """A copy of the list."""
        elements = self._entries.get(self._backend.state_key)
        return [] if elements is None else elements.copy()

    def stored(self) -> list[T] | None:
        """The stored list itself, or None, for operators that only read it."""
        elements: list[T] | None = self._entries.get(self._backend.state_key)
        return elements

    def add(self, value: T) -> None:
        """Appends an element."""
        key = self._backend.state_key
        elements = self._entries.get(key)
        if elements is None:
            self._entries[key] = [value]
        else:
            elements.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Appends elements."""
        key = self._backend.state_key
        elements = self._entries.get(key)
        if elements is None:
            self.update(values)
        else:
            elements.extend(list(values))

    def update(self, values: Iterable[T]) -> None:
        """Replaces all elements."""
        elements = list(values)
        if elements:
            self._entries[self._backend.state_key] = elements
        else:
            self.clear()

    def _unite(self, contents: list[T], others: list[T]) -> list[T]:
        contents.extend(others)
        return contents


class HashMapMapState(HashMapState, MapState[K, V], Generic[K, V]):
    """A map, which iterates in the order in which its keys were first put."""

    def get(self, key: K) -> V | None:
        """The value of the key, or None."""
        value: V | None = self._entries.get(self._backend.state_key, {}).get(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Sets the value of the key."""
        state_key = self._backend.state_key
        contents = self._entries.get(state_key)
        if contents is None:
            self._entries[state_key] = {key: value}
        else:
            contents[key] = value

    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Sets all entries of a mapping, or of pairs."""
        if entries := dict(dict_value):
            self._entries.setdefault(self._backend.state_key, {}).update(entries)

    def remove(self, key: K) -> None:
        """Removes the entry of the key."""
        contents = self._entries.get(self._backend.state_key)
        if contents is not None:
            contents.pop(key, None)
            if not contents:
                self.clear()

    def contains(self, key: K) -> bool:
        """Whether the key has a value, which may be None."""
        return key in self._entries.get(self._backend.state_key, {})

    def items(self) -> Iterable[tuple[K, V]]:
        """All entries as of now."""
        return iter(list(self._entries.get(self._backend.state_key, {}).items()))

    def keys(self) -> Iterable[K]:
        """All keys as of now."""
        return iter(list(self._entries.get(self._backend.state_key, ())))

    def values(self) -> Iterable[V]:
        """All values as of now."""
        return iter(list(self._entries.get(self._backend.state_key, {}).values()))

    def is_empty(self) -> bool:
        """Whether there are no entries."""
        return self._backend.state_key not in self._entries


class HashMapReducingState(MergingHashMapState, ReducingState[T], Generic[T]):
    """One reduced value."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        table: StateTable,
        descriptor: ReducingStateDescriptor[T],
    ) -> None:
        super().__init__(backend, table)
        self._reduce = descriptor.get_reduce_function().reduce

    def get(self) -> T | None:
        """The reduced value, or None."""
        return self._entries.get(self._backend.state_key)

    def add(self, value: T | None) -> None:
        """Reduces a value into the state; None clears it."""
        if value is None:
            self.clear()
            return
        key = self._backend.state_key
        reduced = self._entries.get(key)
        self._entries[key] = value if reduced is None else self._reduce(reduced, value)

    def _unite(self, contents: T, others: T) -> T:
        return self._reduce(contents, others)


class HashMapAggregatingState(
    MergingHashMapState, AggregatingState[IN_contra, OUT_co], Generic[IN_contra, OUT_co]
):
    """An accumulator."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        table: StateTable,
        descriptor: AggregatingStateDescriptor[IN_contra, Any, OUT_co],
    ) -> None:
        super().__init__(backend, table)
        self._function = descriptor.get_agg_function()

    def get(self) -> OUT_co | None:
        """The result of the accumulator, or None."""
        accumulator = self._entries.get(self._backend.state_key)
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: IN_contra | None) -> None:
        """Accumulates a value; None clears the state."""
        if value is None:
            self.clear()
            return
        key, function = self._backend.state_key, self._function
        accumulator = self._entries.get(key)
        if accumulator is None:
            accumulator = function.create_accumulator()
        self._entries[key] = function.add(value, accumulator)

    def _unite(self, contents: Any, others: Any) -> Any:
        return self._function.merge(contents, others)


STATES: dict[str, type[HashMapState]] = {
    "ValueStateDescriptor": HashMapValueState,
    "ListStateDescriptor": HashMapListState,
    "MapStateDescriptor": HashMapMapState,
    "ReducingStateDescriptor": HashMapReducingState,
    "AggregatingStateDescriptor": HashMapAggregatingState,
}
"""By the kind of the descriptor."""

WITH_FUNCTION = ("ReducingStateDescriptor", "AggregatingStateDescriptor")
"""Kinds whose state takes the descriptor's function."""
