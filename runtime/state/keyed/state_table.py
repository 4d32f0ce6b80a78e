"""The tables of a backend: contents by state, namespace and state key, possible changes, and expiry.

The namespace comes before the key, so an operator that stays in one window needs one lookup.

Operators write to the dictionaries of a table directly, so writes cannot be recorded. The table records instead where
a write was possible:

- Without a namespace (VOID): the keys that were touched, that is selected or passed to `touch`.
- In a namespace: the key that was current when an operator selected the namespace. There can be as many namespaces as
  keys (sessions), so looking into each namespace for each touched key would take too long.
- An operator that holds the dictionaries of a few namespaces declares them (`written_to`). Every touched key counts as
  changed in each of them. Such a namespace may be dropped as a whole (`dropped`).

All records of changes are dictionaries, so their order follows from the order of events.

Expired state is removed a few entries at a time, while the state is used. Each run checks a fixed number of keys, and
continues where the last run ended. When a round reaches a namespace, it copies the list of its keys. Only this copy
(some nanoseconds per key) is not bounded. Flink: `TtlIncrementalCleanup`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.time import MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping

    from opchain.runtime.functions.state_descriptors import StateDescriptor
    from opchain.runtime.state.keyed.ttl_states import TimeToLive

    Keys = dict[Any, None]


class IncrementalCleanup:
    """The clean-up of one state.

    Args:
        table: The state.
        ttl: The time to live of its entries.
        size: How many keys a run checks.
        note: Called with the namespace and state key of each entry that changes.
    """

    def __init__(
        self, table: StateTable, ttl: TimeToLive, size: int, note: Callable[[Any, Any], None]
    ) -> None:
        self._table = table
        self._note = note
        self._ttl = ttl
        self._size = size
        self._round: Iterator[tuple[Any, MutableMapping[Any, Any], Any]] = iter(())
        self._oldest = self.idle_until = MIN_LONG_VALUE

    def run(self, now: int) -> None:
        """Checks the next keys. A run stops at the end of a round, even if it has checked fewer keys.

        A round notes the oldest time of all entries. Until that expires, no run has anything to do.
        """
        if now < self.idle_until:
            return
        if not self._check_next(now):
            self.idle_until = self._oldest + self._ttl.ttl_ms
            self._oldest = now
            self._round = self._all_keys()
            self._check_next(now)

    def _check_next(self, now: int) -> bool:
        """Checks the next keys of the round. Returns whether there was one."""
        ttl, kind, checked = self._ttl, self._table.kind, 0
        times_of = _TIMES_OF.get(kind, _time_of)
        for namespace, entries, key in islice(self._round, self._size):
            checked += 1
            contents = entries.get(key)
            if contents is None:
                continue
            oldest = min(times_of(contents), default=now)
            if oldest + ttl.ttl_ms <= now:
                self._note(namespace, key)
                contents = ttl.live(kind, contents)
                if contents is None:
                    del entries[key]
                    continue
                entries[key] = contents
                oldest = min(times_of(contents), default=now)
            self._oldest = min(self._oldest, oldest)
        return checked > 0

    def _all_keys(self) -> Iterator[tuple[Any, MutableMapping[Any, Any], Any]]:
        for namespace in list(self._table.spaces):
            entries = self._table.spaces.get(namespace, {})
            for key in self._table.keys_in(namespace):
                yield namespace, entries, key
            self._table.leave(namespace)


def _time_of(contents: Any) -> tuple[int]:
    return (contents[0],)


_TIMES_OF: dict[str, Callable[[Any], Iterable[int]]] = {
    "ListStateDescriptor": lambda contents: (time for time, _ in contents),
    "MapStateDescriptor": lambda contents: (time for time, _ in contents.values()),
}
"""The times of the parts of an entry, by the kind of state."""


class TouchedNamespaces:
    """Possible changes in the namespaces of one table, except VOID.

    `pairs` has the keys that were selected in each namespace. In the namespaces of `written_to`, every touched key
    counts as changed. `dropped` has the key groups of each namespace that was dropped as a whole.
    """

    __slots__ = ("dropped", "pairs", "written_to")

    def __init__(self) -> None:
        self.pairs: dict[Any, Keys] = {}
        self.written_to: Keys = {}
        self.dropped: dict[Any, dict[int, None]] = {}

    def note(self, namespace: Any, state_key: Any) -> None:
        """Records that an operator used a namespace under a key."""
        keys = self.pairs.get(namespace)
        if keys is None:
            self.pairs[namespace] = {state_key: None}
        else:
            keys[state_key] = None

    def note_dropped(self, namespace: Any, key_groups: Iterable[int]) -> None:
        """Records that a namespace was dropped with all of its keys."""
        self.dropped.setdefault(namespace, {}).update(dict.fromkeys(key_groups))

    def clear(self) -> None:
        """Removes all records."""
        self.pairs.clear()
        self.written_to.clear()
        self.dropped.clear()


def newest(entries: Any, touched: dict[Any, Any]) -> list[Any]:
    """The longest run of touched keys at the end of a dictionary, in order.

    A dictionary appends a new key, and keeps the place of a key whose value is replaced. So all keys that were added
    since the last snapshot are in this run, and are found without iterating over the other keys. The run may begin with
    older keys. Appending the whole run again, in this order, gives the same dictionary.
    """
    found = []
    for key in reversed(entries):
        if key not in touched:
            break
        found.append(key)
    found.reverse()
    return found


RAW = "table"
"""The kind of a table that an operator uses directly, without a descriptor."""


class StateTable:
    """One state of all keys and namespaces.

    `kind` is the name of its descriptor's class, or RAW. `has_ttl` says that contents are stored with the time of their
    last access. `descriptor` is None until the program requests a restored state. `current` is the namespace in use,
    which is kept even if it is empty. `cleanup` removes expired entries, if that is configured. `touched` records
    possible changes, and is None while changes are not tracked.
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
        """The dictionary of a namespace, created if there is none."""
        found = self.spaces.get(namespace)
        if found is None:
            found = self.spaces[namespace] = self._new_space()
        return found

    def keys_in(self, namespace: Any) -> Iterable[Any]:
        """The keys of a namespace. The table may change while the caller iterates."""
        return list(self.spaces.get(namespace, ()))

    def leave(self, namespace: Any) -> None:
        """Drops a namespace if it is empty, and neither VOID nor the current namespace."""
        if namespace is VOID or self.spaces.get(namespace, True) or namespace == self.current:
            return
        del self.spaces[namespace]

    def _new_space(self) -> MutableMapping[Any, Any]:
        return {}

    def require(self, descriptor: StateDescriptor[Any], where: str) -> None:
        """Registers the descriptor of a request for this state.

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
    """The states of one backend by name, in the order in which they were requested or restored."""

    def add(
        self,
        name: str,
        kind: str,
        *,
        has_ttl: bool,
        descriptor: StateDescriptor[Any] | None = None,
    ) -> StateTable:
        """Adds the table of a new state."""
        table = self[name] = self._new_table(name, kind, has_ttl, descriptor)
        return table

    def _new_table(
        self, name: str, kind: str, has_ttl: bool, descriptor: StateDescriptor[Any] | None
    ) -> StateTable:
        return StateTable(name, kind, has_ttl=has_ttl, descriptor=descriptor)


def kind_of(descriptor: StateDescriptor[Any]) -> str:
    """The kind of a state, as snapshots name it."""
    return type(descriptor).__name__


def has_ttl(descriptor: StateDescriptor[Any]) -> bool:
    """Whether entries of the state expire."""
    config = descriptor.ttl_config
    return config is not None and config.is_enabled()


def _described(descriptor: StateDescriptor[Any]) -> str:
    ttl = descriptor.ttl_config
    return f"{descriptor!r}" + (f" with {ttl!r}" if ttl is not None else "")
