"""The keyed state of one subtask of an operator: the contract that operators, functions and checkpoints use.

    backend.set_current_key(key)                    # before each record and each timer
    count = backend.get_state(descriptor)           # once, in open(): it follows the current key
    count.update((count.value() or 0) + 1)

    contents = backend.namespaced_state(descriptor) # once: a state per key and namespace (a window)
    contents.set_current_namespace(window)          # cheap if the namespace is the same object
    contents.add(value)
    contents.merge_namespaces(target, sources)      # list, reducing and aggregating state

    table = backend.table("sums")                   # operators may use the dictionary itself
    table[backend.state_key] = value                # or with state_key(key), see key_identity.py

- A state is identified by its name. Asking for a name again gives the same state, or raises StateError if the kind,
  the type or the time to live differs. States of `get_*` use the namespace VOID. `namespaced_state` gives another
  object, whose namespace can be set.
- `table(name, namespace)` maps state keys to contents: a value, a list, a dict, a reduced value, or an accumulator.
  With a time to live the contents are pairs of the time of the last access and the value. The table of VOID is always
  the same dictionary. That of another namespace is replaced when it becomes empty, so an operator asks for it again
  when it changes the namespace.
- The hash map backend copies no values. Changing a value in place changes the state, also after the value was handed
  over. The backend on disk copies values, so a change counts only when it is written. Flink's backends behave the same
  way. Contents of a `table` are never copied. On disk they may be changed in place until the next key.
- Every access before a key is set raises StateError.
- A snapshot is bytes per key group. A restore takes the snapshots of any number of subtasks, and keeps the key groups
  of this subtask. It keeps the order of keys: exactly if the parallelism is the same, otherwise by key group.

Flink: `KeyedStateBackend`, `AbstractKeyedStateBackend`, `CheckpointableKeyedStateBackend`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.state import KeyedStateStore

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        MutableMapping,
    )

    from opchain.runtime.functions.state_descriptors import StateDescriptor
    from opchain.runtime.state.keys.java_hash import Hasher
    from opchain.runtime.state.keys.key_groups import KeyGroupRange
    from opchain.runtime.state.keys.key_identity import KeyIdentity


class _Void:
    """The namespace of state without namespaces. It has its own class, so it equals nothing else."""

    def __repr__(self) -> str:
        return "VOID"

    def __reduce__(self) -> str:
        return "VOID"


VOID = _Void()
"""Flink: `VoidNamespace`."""


@dataclass(frozen=True, slots=True)
class KeyedSubtask:
    """The subtask of an operator that a backend is created for.

    `hasher` gives the hash code of keys, if their type declares another than their class's. `now` is the clock of
    states with a time to live, in milliseconds. `where` names the operator and its call site in messages.
    """

    subtask: int
    max_parallelism: int
    key_groups: KeyGroupRange
    identity: KeyIdentity
    hasher: Hasher | None
    now: Callable[[], int]
    where: str


class StateBackendSpec(ABC):
    """A choice of state backend. The driver pickles it with the program; each subtask calls `create`.

    `state.backend.type` may name a subclass that needs no arguments, as `package.module.Class`. A backend that keeps
    its entries in an ordered table of bytes extends TableStoreBackend instead (runtime/state/disk/disk_backend.py).
    Flink: `StateBackend`, `StateBackendFactory`.
    """

    @abstractmethod
    def create(self, subtask: KeyedSubtask) -> KeyedStateBackend:
        """The keyed state of a subtask; empty."""


class KeyedStateBackend(KeyedStateStore):
    """See the module.

    Attributes:
        current_key: The key as the key selector gave it.
        state_key: What stands for it in tables.
        identity: How this operator tells keys apart.
        key_groups: The key groups of this subtask.
        max_parallelism: The number of all key groups.
    """

    current_key: Any
    state_key: Any
    identity: KeyIdentity
    key_groups: KeyGroupRange
    max_parallelism: int

    @abstractmethod
    def set_current_key(self, key: Any) -> None:
        """Makes a key the current one.

        Raises:
            UnstableKeyError: The key is None, or has no stable hash.
        """

    @abstractmethod
    def set_current_state_key(self, state_key: Any) -> None:
        """Makes the key that a state key stands for the current one."""

    @abstractmethod
    def clear_current_key(self) -> None:
        """Removes the current key. State cannot be used until another key is selected."""

    @abstractmethod
    def on_key_selected(self, listener: Callable[[], None]) -> None:
        """Registers a function that is called whenever a key is selected. Flink: `KeySelectionListener`."""

    @abstractmethod
    def end_each_key(self, end: Callable[[], None]) -> None:
        """Batch mode, where keys come one after the other: `end` runs before another key is selected.

        All state is forgotten then. Flink: `BatchExecutionKeyedStateBackend`.
        """

    @abstractmethod
    def state(self, descriptor: StateDescriptor[Any]) -> Any:
        """The state of any kind of descriptor, in the namespace VOID."""

    @abstractmethod
    def namespaced_state(self, descriptor: StateDescriptor[Any]) -> Any:
        """The state of any kind of descriptor, one object per name.

        It also has `set_current_namespace` and `merge_namespaces`: see HashMapState.
        """

    @abstractmethod
    def get_partitioned_state(self, namespace: Any, descriptor: StateDescriptor[Any]) -> Any:
        """`namespaced_state`, in this namespace: valid until the next call for the same name."""

    def plain_entries(
        self,
        state: Any,  # noqa: ARG002
        kind: str,  # noqa: ARG002
        declared: str | None = None,  # noqa: ARG002
        *,
        touches: bool = False,  # noqa: ARG002
        sets_keys: bool = False,  # noqa: ARG002
    ) -> MutableMapping[Any, Any] | None:
        """The dictionary from state keys to contents of a "value", "list" or "map" state, for look-ups.

        None if a call of the state does more than a look-up: with a time to live; on disk; if writes are checked by
        another type than `declared`; while changes are tracked, unless the caller `touches` all keys itself; while the
        end of each key is awaited, unless the caller `sets_keys` when they change.
        """
        return None

    @abstractmethod
    def table(self, name: str, namespace: Any = VOID) -> MutableMapping[Any, Any]:
        """The dictionary of a state in a namespace, made on first use; keys are state keys."""

    @abstractmethod
    def namespaces(self, name: str) -> list[Any]:
        """The namespaces in which a state has entries, VOID included, in the order of their creation."""

    @abstractmethod
    def leave(self, name: str, namespace: Any) -> None:
        """Drops the table of a namespace that an operator has emptied."""

    @abstractmethod
    def keys(self, name: str, namespace: Any = VOID) -> Iterator[Any]:
        """The keys that have this state, in the order in which they were added."""

    @abstractmethod
    def apply_to_all_keys(
        self,
        descriptor: StateDescriptor[Any],
        function: Callable[[Any, Any], object],
        namespace: Any = VOID,
    ) -> None:
        """Calls `function(key, state)` for each key that has the state; leaves no current key."""

    @abstractmethod
    def described_states(self) -> list[tuple[str, str, str]]:
        """The states known so far: name, kind as snapshots call it, type as text or empty."""

    @abstractmethod
    def clear_all(self) -> None:
        """Drops all state of all keys."""

    @abstractmethod
    def entry_count(self) -> int:
        """How many (state, key, namespace) have contents. Flink: `numKeyValueStateEntries`."""

    @abstractmethod
    def close(self) -> None:
        """Releases resources other than memory, such as files. The backend cannot be used afterwards."""

    @abstractmethod
    def snapshot(self) -> dict[int, bytes]:
        """The whole state, by key group. Key groups without state are left out."""

    @abstractmethod
    def restore(self, snapshots: Iterable[Mapping[int, bytes]]) -> None:
        """Restores snapshots. Key groups of other subtasks are ignored.

        Raises:
            StateError: A snapshot is not readable, or does not match the states that are registered.
        """

    # Changes: see keyed_changes

    @abstractmethod
    def track_changes(self) -> None:
        """Notes what changes since the last snapshot or restore, for `snapshot_changes`; off by default.

        Call it before anything changes: before or right after a restore, or before the first snapshot.
        What is written under a key counts where the key was touched: selected as the current one, or
        given to `touch`.
        """

    @property
    @abstractmethod
    def tracks_changes(self) -> bool:
        """Whether `snapshot_changes` would be complete: it needs a snapshot or a restore before it."""

    @abstractmethod
    def touch(self, keys: Iterable[Any]) -> None:
        """Notes keys under which an operator writes to tables without selecting each.

        Call it once per batch, with the keys as the key selector gives them, before `snapshot_changes`;
        nothing happens where changes are not tracked.
        """

    @abstractmethod
    def touched_keys(self) -> dict[Any, None]:
        """The state keys that were touched since the last snapshot, in order; not to be changed."""

    @abstractmethod
    def write_to(self, name: str, namespaces: Iterable[Any]) -> None:
        """Says that an operator keeps the tables of some namespaces at hand, and writes to them directly.

        Every touched key counts in each of them then. Call it before `snapshot_changes`. Single keys
        must not go from such a table: only all together, by `drop`.
        """

    @abstractmethod
    def drop(self, name: str, namespace: Any) -> None:
        """Drops a namespace of a state, with all of its keys."""

    @abstractmethod
    def key_groups_of(self, state_keys: Collection[Any]) -> Iterable[int]:
        """Key groups that cover some state keys: exactly theirs, or all key groups if there are many keys."""

    @abstractmethod
    def snapshot_changes(self) -> dict[int, bytes]:
        """The changes since the last snapshot of either kind, by key group. Later changes count from here.

        Raises:
            StateError: A value cannot be pickled, or changes are not tracked.
        """

    @abstractmethod
    def apply_changes(self, changes: Mapping[int, bytes]) -> None:
        """Applies the result of `snapshot_changes` to the state that was restored from earlier snapshots.

        Raises:
            StateError: The changes are not readable.
        """
