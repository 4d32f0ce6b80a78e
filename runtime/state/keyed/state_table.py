"""The tables of a backend: contents by state, namespace and state key; what may have changed in them; and expiry.

The namespace comes before the key, so an operator that stays in one window needs one lookup.

Operators write to the dictionaries of a table directly, so a change cannot be noted where it is written. The places
where a change is possible are noted instead:

- Without a namespace (VOID): the keys that were touched, that is selected or passed to `touch`.
- In a namespace: the key that was selected when an operator went to the namespace. There can be as many namespaces as
  keys (sessions), so looking into each namespace for each touched key would take too long.
- An operator that keeps the dictionaries of a few namespaces says which (`written_to`). Every touched key counts in
  each of them. Such a namespace may be dropped as a whole (`dropped`).

All notes are dictionaries, so their order follows from the order of events.

Expired state is removed a few entries at a time, while the state is used. Each run looks at a fixed number of keys
and continues where the last run ended. A round copies the references of a namespace's keys when it gets there; only
this copy (some nanoseconds per key) is not bounded by the number. Flink: `TtlIncrementalCleanup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError
from opchain.runtime.state.keyed.keyed_backend import VOID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping

    from opchain.runtime.functions.state_descriptors import StateDescriptor
    from opchain.runtime.state.keyed.ttl_states import TimeToLive

    Keys = dict[Any, None]


class IncrementalCleanup:
    """The clean-up of one state.

    Args:
        table: The state.
        ttl: When its entries are expired.
        size: How many keys a run looks at.
        note: Hears the namespace and state key of each entry that changes.
    """

    def __init__(
        self, table: StateTable, ttl: TimeToLive, size: int, note: Callable[[Any, Any], None]
    ) -> None:
        self._table = table
        self._note = note
        self._ttl = ttl
        self._size = size
        self._round: Iterator[tuple[Any, MutableMapping[Any, Any], Any]] = iter(())

    def run(self) -> None:
        """Looks at the next keys; the run that reaches the end of a round stops there."""
        if not self._look():
            self._round = self._all_keys()
            self._look()

    def _look(self) -> bool:
        """Whether there was a key to look at."""
        ttl, kind = self._ttl, self._table.kind
        looked_at = 0
        for namespace, entries, key in self._round:
            contents = entries.get(key)
            if contents is not None:
                live = ttl.live(kind, contents)
                if live is not contents:
                    self._note(namespace, key)
                if live is None:
                    del entries[key]
                elif live is not contents:
                    entries[key] = live
            looked_at += 1
            if looked_at >= self._size:
                break
        return looked_at > 0

    def _all_keys(self) -> Iterator[tuple[Any, MutableMapping[Any, Any], Any]]:
        for namespace in list(self._table.spaces):
            entries = self._table.spaces.get(namespace, {})
            for key in self._table.keys_in(namespace):
                yield namespace, entries, key
            self._table.leave(namespace)


class TouchedNamespaces:
    """The namespaces of one table, but VOID.

    `pairs` has the keys that were selected in each. `written_to` are those in which every touched key
    counts. `dropped` has, for each that was dropped whole, the key groups that it held.
    """

    __slots__ = ("dropped", "pairs", "written_to")

    def __init__(self) -> None:
        self.pairs: dict[Any, Keys] = {}
        self.written_to: Keys = {}
        self.dropped: dict[Any, dict[int, None]] = {}

    def note(self, namespace: Any, state_key: Any) -> None:
        """Notes that an operator has used a namespace under a key."""
        keys = self.pairs.get(namespace)
        if keys is None:
            self.pairs[namespace] = {state_key: None}
        else:
            keys[state_key] = None

    def note_dropped(self, namespace: Any, key_groups: Iterable[int]) -> None:
        """A namespace was dropped with all keys that it held."""
        self.dropped.setdefault(namespace, {}).update(dict.fromkeys(key_groups))

    def clear(self) -> None:
        """Starts again."""
        self.pairs.clear()
        self.written_to.clear()
        self.dropped.clear()


def newest(entries: Any, touched: dict[Any, Any]) -> list[Any]:
    """The keys at the end of a dictionary that were touched, in order.

    A dictionary keeps the place of a key whose value is replaced, and puts a new one last. So what came
    in since the last snapshot, all of it touched, is at the end, and is found without going over the
    rest. Keys in front of it that were touched, too, are in the result where nothing lies between:
    putting all of the result last again, in this order, gives the same dictionary.
    """
    found = []
    for key in reversed(entries):
        if key not in touched:
            break
        found.append(key)
    found.reverse()
    return found


RAW = "table"
"""The kind of a table that an operator works on itself."""


class StateTable:
    """One state of all keys and namespaces.

    `kind` is the name of its descriptor's class, or RAW. `has_ttl` says that contents are stored with
    the time of their last access. `descriptor` is None where nobody has asked for the state since it
    was restored. `current` is the namespace that is in use, which stays while it is empty; `cleanup`
    is what removes expired entries, if anything does; `touched` notes where changes are possible, None
    where nobody tracks them.
    """

    __slots__ = (
        "cleanup",
        "current",
        "descriptor",
        "has_ttl",
        "kind",
        "name",
        "spaces",
        "touched",
    )

    def __init__(
        self, name: str, kind: str, *, has_ttl: bool, descriptor: StateDescriptor[Any] | None
    ) -> None:
        self.name = name
        self.kind = kind
        self.has_ttl = has_ttl
        self.descriptor = descriptor
        self.spaces: dict[Any, MutableMapping[Any, Any]] = {VOID: self._new_space()}
        self.current: Any = VOID
        self.cleanup: IncrementalCleanup | None = None
        self.touched: TouchedNamespaces | None = None

    def space(self, namespace: Any) -> MutableMapping[Any, Any]:
        """The dictionary of a namespace, made where there is none."""
        found = self.spaces.get(namespace)
        if found is None:
            found = self.spaces[namespace] = self._new_space()
        return found

    def keys_in(self, namespace: Any) -> Iterable[Any]:
        """The keys of a namespace, to go over while it changes."""
        return list(self.spaces.get(namespace, ()))

    def leave(self, namespace: Any) -> None:
        """Forgets a namespace that is empty; VOID stays, and so does the current one."""
        if namespace is VOID or self.spaces.get(namespace, True) or namespace == self.current:
            return
        del self.spaces[namespace]

    def _new_space(self) -> MutableMapping[Any, Any]:
        return {}

    def require(self, descriptor: StateDescriptor[Any], where: str) -> None:
        """Takes the descriptor of whoever asks for the state.

        Raises:
            StateError: It describes another state.
        """
        kind = kind_of(descriptor)
        if self.descriptor is not None:
            if self.descriptor != descriptor:
                raise StateError(
                    f"{where}: state '{self.name}' is registered as "
                    f"{_described(self.descriptor)}, but was requested as "
                    f"{_described(descriptor)}; use a different name for each state"
                )
            return
        if kind != self.kind:
            raise StateError(
                f"{where}: state '{self.name}' is registered as {self.kind} (by the operator or "
                f"the restored snapshot), but was requested as {kind}; keep its kind, or use "
                f"another name for the new state"
            )
        self.descriptor = descriptor


class StateTables(dict[str, StateTable]):
    """The states of one backend by name, in the order in which they were first asked for or restored."""

    def add(
        self,
        name: str,
        kind: str,
        *,
        has_ttl: bool,
        descriptor: StateDescriptor[Any] | None = None,
    ) -> StateTable:
        """Makes the table of a state that is not known yet."""
        table = self[name] = self._made(name, kind, has_ttl, descriptor)
        return table

    def _made(
        self, name: str, kind: str, has_ttl: bool, descriptor: StateDescriptor[Any] | None
    ) -> StateTable:
        return StateTable(name, kind, has_ttl=has_ttl, descriptor=descriptor)


def kind_of(descriptor: StateDescriptor[Any]) -> str:
    """What a snapshot calls the kind of a state."""
    return type(descriptor).__name__


def has_ttl(descriptor: StateDescriptor[Any]) -> bool:
    """Whether entries of the state expire."""
    config = descriptor.ttl_config
    return config is not None and config.is_enabled()


def _described(descriptor: StateDescriptor[Any]) -> str:
    ttl = descriptor.ttl_config
    return f"{descriptor!r}" + (f" with {ttl!r}" if ttl is not None else "")
