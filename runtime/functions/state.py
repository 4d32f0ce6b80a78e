"""State as a function sees it (per key, or per subtask), the stores that give it, and CheckpointedFunction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.types.type_variables import IN_contra, K, OUT_co, T, V, V_co

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opchain.runtime.functions.state_descriptors import (
        AggregatingStateDescriptor,
        ListStateDescriptor,
        MapStateDescriptor,
        ReducingStateDescriptor,
        ValueStateDescriptor,
    )


class State(ABC):
    """Some state under the current key."""

    @abstractmethod
    def clear(self) -> None:
        """Removes the contents of the current key."""


class ValueState(State, Generic[T]):
    """One value."""

    @abstractmethod
    def value(self) -> T | None:
        """The value, or None if there is none or it has expired."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replaces the value; None clears it."""


class AppendingState(State, Generic[IN_contra, OUT_co]):
    """State that takes in elements."""

    @abstractmethod
    def get(self) -> OUT_co | None:
        """The result of the elements; None without elements."""

    @abstractmethod
    def add(self, value: IN_contra) -> None:
        """Adds an element."""


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
        """The elements, or an empty iterable."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replaces all elements; none at all clears the state."""

    @abstractmethod
    def add_all(self, values: Iterable[T]) -> None:
        """Adds several elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class _ReadableMap(State, Generic[K, V_co]):
    @abstractmethod
    def get(self, key: K) -> V_co | None:
        """The value of the key, or None."""

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
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Sets all entries of a mapping or of pairs, and leaves the others.

        PyFlink 2.3 takes pairs only, such as `values.items()`.
        """

    @abstractmethod
    def remove(self, key: K) -> None:
        """Removes the entry of the key, if there is one."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map under the current key. `state[key]` is None if there is no entry."""

    def get_internal_state(self) -> MapState[K, V]:
        """The state itself. In PyFlink it is the object that reads and writes the backend."""
        return self


class ReadOnlyBroadcastState(_ReadableMap[K, V_co]):
    """A map that every subtask has a copy of, seen from the side that must not change it.

    The values are the stored objects, not copies: changing one in place corrupts the state.
    """


class BroadcastState(_WritableMap[K, V], ReadOnlyBroadcastState[K, V]):
    """A map that every subtask has a copy of, seen from the broadcast side."""


class KeyedStateStore(ABC):
    """Access to the states of the current key. The name of its descriptor identifies a state.

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
    """Access to the operator state of the subtask. The name of its descriptor identifies a state.

    PyFlink has only broadcast state. Flink's Java API also has the lists.
    """

    @abstractmethod
    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor[K, V]
    ) -> BroadcastState[K, V]:
        """A map of which every subtask has a copy, also after a change of parallelism."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list whose elements are dealt out evenly again when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list of which every subtask gets all elements of all subtasks after a restore."""

    @abstractmethod
    def get_registered_state_names(self) -> frozenset[str]:
        """The names of the list states."""

    @abstractmethod
    def get_registered_broadcast_state_names(self) -> frozenset[str]:
        """The names of the broadcast states."""


class FunctionSnapshotContext(ABC):
    """The checkpoint that is being taken."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Its number: one more than the one before."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When it was triggered, in milliseconds."""


class FunctionInitializationContext(ABC):
    """Access to the state of a function when it starts, new or restored."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the job starts from a checkpoint or savepoint."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The number of that checkpoint, or None on a fresh start."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the subtask, split or united when the parallelism changes."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """The store of keyed state. States can be created here, and used once a key is current."""


class CheckpointedFunction(ABC):
    """A mixin for functions with operator state, or with state that they write only at checkpoints.

    Flink has it in Java only.
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Writes the function's fields to the states that `initialize_state` created."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Makes the states, and reads them where `context.is_restored()`; runs before `open`."""


class CheckpointListener(ABC):
    """A mixin for functions that are notified when checkpoints complete or fail. Flink has it in Java only.

    In an unbounded job on Spark it hears so at the start of the next epoch, before its records. A task that has
    moved to another process, or was restored, hears of the checkpoint that it resumes from.
    """

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete, and so is everything before it; may be skipped or repeated."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint failed. A later checkpoint includes its changes."""
