"""The kinds of state as a function sees them: per key, or per subtask where made by an operator store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic

from opchain.runtime.type_variables import IN_contra, K, OUT_co, T, V, V_co

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class State(ABC):
    """Some state under the current key."""

    @abstractmethod
    def clear(self) -> None:
        """Removes what is kept under the current key."""


class ValueState(State, Generic[T]):
    """One value."""

    @abstractmethod
    def value(self) -> T | None:
        """The value, or None where there is none (or it has expired)."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replaces the value; None clears it."""


class AppendingState(State, Generic[IN_contra, OUT_co]):
    """State that takes in elements."""

    @abstractmethod
    def get(self) -> OUT_co | None:
        """What the elements add up to, or None where there are none."""

    @abstractmethod
    def add(self, value: IN_contra) -> None:
        """Takes in an element."""


class MergingState(AppendingState[IN_contra, OUT_co]):
    """Appending state that can be united when windows merge."""


class ReducingState(MergingState[T, T]):
    """One value: all elements, combined by a ReduceFunction as they come."""


class AggregatingState(MergingState[IN_contra, OUT_co]):
    """The accumulator of an AggregateFunction; `get` gives the function's result of it."""


class ListState(MergingState[T, "Iterable[T]"]):
    """A list of elements, in the order in which they were added."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """The elements; empty where there are none."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replaces all elements; none at all clears the state."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Takes in several elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class _ReadableMap(State, Generic[K, V_co]):
    @abstractmethod
    def get(self, key: K) -> V_co | None:
        """The value of the key, or None where there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether the key has a value."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V_co]]:
        """All entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys."""

    @abstractmethod
    def values(self) -> Iterable[V_co]:
        """All values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there are no entries."""

    def __getitem__(self, key: K) -> V_co | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _WritableMap(_ReadableMap[K, V]):
    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Sets the value of the key."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Sets all entries of the mapping, and leaves the others."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Removes the entry of the key; nothing happens where there is none."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map under the current key. `state[key]` is None where there is no entry."""


class ReadOnlyBroadcastState(_ReadableMap[K, V_co]):
    """A map that every subtask has a copy of, seen from the side that must not change it.

    The values are the stored objects, not copies: changing one in place corrupts the state.
    """


class BroadcastState(_WritableMap[K, V], ReadOnlyBroadcastState[K, V]):
    """A map that every subtask has a copy of, seen from the broadcast side."""
