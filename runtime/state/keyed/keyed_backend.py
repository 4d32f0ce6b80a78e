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

    `hasher` is the hash function of the declared key type, if there is one. `now` is the clock of states with a time
    to live, in milliseconds. `where` names the operator and its call site in messages.
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
        current_key: The key that the key selector returned.
        state_key: The key of tables that represents the current key (see key_identity.py).
        identity: Which keys are equal.
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
        """Makes the key that a state key represents the current one."""

    @abstractmethod
    def clear_current_key(self) -> None:
        """Removes the current key. State cannot be used until another key is selected."""

    @abstractmethod
    def on_key_selected(self, listener: Callable[[], None]) -> None:
        """Registers a function that is called whenever a key is selected. Flink: `KeySelectionListener`."""

    @abstractmethod
    def end_each_key(self, end: Callable[[], None]) -> None:
        """Registers a function for batch mode, which processes one key after the other.

        The backend calls `end` before it selects another key, and then drops all state. Flink:
        `BatchExecutionKeyedStateBackend`.
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
        """`namespaced_state` with this current namespace. It is valid until the next call for the same name."""

    def plain_entries(
        self,
        state: Any,  # noqa: ARG002
        kind: str,  # noqa: ARG002
        declared: str | None = None,  # noqa: ARG002
        *,
        touches: bool = False,  # noqa: ARG002
        sets_keys: bool = False,  # noqa: ARG002
    ) -> MutableMapping[Any, Any] | None:
        """The dictionary from state keys to contents of a state, for direct look-ups.

        The kind is "value", "list" or "map", or "expiring value" and so on for states with a time to live.

        None if a method of the state does more than a look-up: if the state is of another kind or is on disk; if
        writes are checked against another type than `declared`; if changes are tracked, unless the caller `touches`
        all keys itself; and after `end_each_key`, unless the caller `sets_keys` when they change.
        """
        return None

    @abstractmethod
    def table(self, name: str, namespace: Any = VOID) -> MutableMapping[Any, Any]:
        """The dictionary of a state in a namespace, created on first use. Its keys are state keys."""

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
        """Calls `function(key, state)` for each key that has the state. No key is current afterwards."""

    @abstractmethod
    def described_states(self) -> list[tuple[str, str, str]]:
        """The states that were registered or restored: name, kind as in snapshots, and type as text or empty."""

    @abstractmethod
    def clear_all(self) -> None:
        """Drops all state of all keys."""

    @abstractmethod
    def entry_count(self) -> int:
        """The number of (state, key, namespace) with contents. Flink: `numKeyValueStateEntries`."""

    @abstractmethod
    def close(self) -> None:
        """Releases resources other than memory, such as files. The backend cannot be used afterwards."""

    @abstractmethod
    def snapshot(self) -> dict[int, bytes]:
        """The whole state, by key group. Key groups without state are left out."""

    @abstractmethod
    def restore(self, snapshots: Iterable[Mapping[int, bytes]]) -> None:
        """Restores snapshots, or applies changes to restored state. Key groups of other subtasks are ignored.

        Raises:
            StateError: A snapshot is not readable, or does not match the states that are registered.
        """

    # Changes: see keyed_changes

    @abstractmethod
    def track_changes(self) -> None:
        """Begins to record changes for `snapshot_changes`, which is off by default.

        Call it before anything changes: before or right after a restore, or before the first snapshot. A write is
        recorded if its key was touched: selected as the current key, or passed to `touch`.
        """

    @property
    @abstractmethod
    def tracks_changes(self) -> bool:
        """Whether `snapshot_changes` would be complete, which needs an earlier snapshot or restore."""

    @abstractmethod
    def touch(self, keys: Iterable[Any]) -> None:
        """Records keys under which an operator writes to tables without selecting each key.

        Call it once per batch, with keys as the key selector returns them, before `snapshot_changes`. It has no effect
        if changes are not tracked.
        """

    @abstractmethod
    def touching(self, due: Iterable[tuple[int, Any, Any]]) -> Iterator[tuple[int, Any, Any]]:
        """Passes on timers (time, namespace, state key), and records the key of each, as `touch` does."""

    @abstractmethod
    def touched_keys(self) -> dict[Any, None]:
        """The state keys that were touched since the last snapshot, in order. Do not change the dictionary."""

    @abstractmethod
    def write_to(self, name: str, namespaces: Iterable[Any]) -> None:
        """Declares that an operator holds the tables of some namespaces, and writes to them directly.

        Every touched key then counts as changed in each of these namespaces. Call it before `snapshot_changes`. Do not
        remove single keys from such a table: use `drop` to remove all of them.
        """

    @abstractmethod
    def drop(self, name: str, namespace: Any) -> None:
        """Drops a namespace of a state, with all of its keys."""

    @abstractmethod
    def key_groups_of(self, state_keys: Collection[Any]) -> Iterable[int]:
        """The key groups of some state keys, or all key groups of the subtask if there are many keys."""

    @abstractmethod
    def snapshot_changes(self) -> dict[int, bytes]:
        """The changes since the last snapshot of either kind, by key group. The next changes begin here.

        Raises:
            StateError: A value cannot be pickled, or changes are not tracked.
        """
