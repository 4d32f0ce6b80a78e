"""State interfaces for functions (keyed and operator state), their stores, and CheckpointedFunction."""

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
    """The base class of states."""

    @abstractmethod
    def clear(self) -> None:
        """Removes the state of the current key."""


class ValueState(State, Generic[T]):
    """One value."""

    @abstractmethod
    def value(self) -> T | None:
        """The value. None if it was never set or has expired."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replaces the value; None clears it."""


class AppendingState(State, Generic[IN_contra, OUT_co]):
    """State to which elements are added."""

    @abstractmethod
    def get(self) -> OUT_co | None:
        """The result of all elements. None without elements."""

    @abstractmethod
    def add(self, value: IN_contra) -> None:
        """Adds an element."""


class MergingState(AppendingState[IN_contra, OUT_co]):
    """Appending state that can be merged when windows merge."""


class ReducingState(MergingState[T, T]):
    """One value: a ReduceFunction combines each new element with it."""


class AggregatingState(MergingState[IN_contra, OUT_co]):
    """The accumulator of an AggregateFunction. `get` returns the function's result."""


class ListState(MergingState[T, "Iterable[T]"]):
    """A list of elements, in the order in which they were added."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """The elements, or an empty iterable."""

    @abstractmethod
    def update(self, values: Iterable[T]) -> None:
        """Replaces all elements. An empty iterable clears the state."""

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
        """Sets all entries of a mapping, or of (key, value) pairs. Other entries are kept.

        PyFlink 2.3 only accepts pairs, such as `values.items()`.
        """

    @abstractmethod
    def remove(self, key: K) -> None:
        """Removes the entry of the key, if there is one."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_WritableMap[K, V]):
    """A map per key. `state[key]` is None if there is no entry."""

    def get_internal_state(self) -> MapState[K, V]:
        """The state itself. In PyFlink, it returns the object that accesses the backend."""
        return self


class ReadOnlyBroadcastState(_ReadableMap[K, V_co]):
    """A map that is copied to every subtask, for the side that must not change it.

    The values are the stored objects, not copies: changing one in place corrupts the state.
    """


class BroadcastState(_WritableMap[K, V], ReadOnlyBroadcastState[K, V]):
    """A map that is copied to every subtask, for the broadcast side, which may change it."""


class KeyedStateStore(ABC):
    """Access to keyed state. A state is identified by the name of its descriptor.

    A state object always refers to the current key: get it once, in `open`.

    Every getter raises StateError on a stream without key. It also does so if a state with this name has a different
    kind or type.
    """

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor[T]) -> ValueState[T]:
        """A single value per key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list per key."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor[K, V]) -> MapState[K, V]:
        """A map per key."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[T]) -> ReducingState[T]:
        """A value per key, combined with new elements by a ReduceFunction."""

    @abstractmethod
    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[IN_contra, Any, OUT_co]
    ) -> AggregatingState[IN_contra, OUT_co]:
        """An accumulator per key, to which an AggregateFunction adds elements."""


class OperatorStateStore(ABC):
    """Access to operator state, which belongs to a subtask. A state is identified by the name of its descriptor.

    PyFlink has only broadcast state. Flink's Java API also has list state.
    """

    @abstractmethod
    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor[K, V]
    ) -> BroadcastState[K, V]:
        """A map that is copied to every subtask, also after rescaling."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list whose elements are redistributed evenly when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """A list that, after a restore, has the elements of all subtasks in every subtask."""

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
        """The id of the checkpoint. Each checkpoint's id is one more than the id before."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When the checkpoint was triggered, in milliseconds."""


class FunctionInitializationContext(ABC):
    """Access to the state of a function when the function starts."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the job starts from a checkpoint or savepoint."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The id of the restored checkpoint. None if the job starts without one."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """The store of operator state, which is redistributed when the parallelism changes."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """The store of keyed state. States can be created here, but only be used while there is a current key."""


class CheckpointedFunction(ABC):
    """A mixin for functions with operator state, or with fields that they save only at checkpoints.

    In Flink, only the Java API has it.
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Saves the fields of the function to the states that `initialize_state` created."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Creates the states, and reads them if `context.is_restored()`. Called before `open`."""


class CheckpointListener(ABC):
    """A mixin for functions that are notified when checkpoints complete or fail. In Flink, only the Java API has it.

    In an unbounded job on Spark, the notification comes at the start of the next epoch, before its records. A task that
    was restored or moved to another process is notified of the checkpoint that it resumes from.
    """

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint and all earlier ones are complete. Notifications may be skipped or repeated."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint failed. A later checkpoint includes its changes."""
