"""What the hash map backend keeps of one state: a dictionary per namespace, from state key to contents.

The namespace comes first: a window operator stays in one window for many records and many timers, and
then a state costs one look-up, as it does without namespaces. (With the key first, each key would have
a dictionary of its windows; with pairs, each access would build and hash a pair with a window in it.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError
from opchain.runtime.state.keyed_backend import VOID

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from opchain.runtime.state.descriptors import StateDescriptor
    from opchain.runtime.state.incremental_cleanup import IncrementalCleanup
    from opchain.runtime.state.touched_state import TouchedNamespaces

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
                    f"{where}: state '{self.name}' is asked for as {_described(descriptor)}, and is "
                    f"known as {_described(self.descriptor)}; give each state a name of its own"
                )
            return
        if kind != self.kind:
            raise StateError(
                f"{where}: state '{self.name}' is asked for as {kind}, and is known as {self.kind} (the "
                "operator's own, or of the snapshot that was restored); keep its kind, or give the new "
                "state another name"
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
