"""Where a function gets its states from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.runtime.state.descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        ValueStateDescriptor,
    )
    from opchain.runtime.state.state import (
        AggregatingState,
        BroadcastState,
        ListState,
        MapState,
        ReducingState,
        ValueState,
    )
    from opchain.runtime.type_variables import IN_contra, K, OUT_co, T, V


class KeyedStateStore(ABC):
    """Gives the states of the current key, each known by its descriptor's name.

    The object handed out follows the current key: get it once, in `open`.

    Every getter raises StateError on a stream without key, and where the name is already taken by a
    descriptor of another kind or type.
    """

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """One value."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """A map."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """One value that takes in others."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN_contra, Any, OUT_co]
    ) -> AggregatingState[IN_contra, OUT_co]:
        """An accumulator."""


class OperatorStateStore(ABC):
    """Gives states of the subtask, without any key; each is known by its descriptor's name.

    PyFlink has the broadcast state alone; the lists are Flink's in Java.
    """

    @abstractmethod
    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor[K, V]
    ) -> BroadcastState[K, V]:
        """A map of which every subtask has a copy, also after a change of parallelism."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list whose elements are dealt out evenly anew when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list of which every subtask gets all elements of all subtasks after a restore."""

    @abstractmethod
    def get_registered_state_names(self) -> frozenset[str]:
        """The names of the list states."""

    @abstractmethod
    def get_registered_broadcast_state_names(self) -> frozenset[str]:
        """The names of the broadcast states."""
