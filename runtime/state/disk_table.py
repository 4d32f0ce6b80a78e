"""What a backend on disk keeps of one state: entries on disk per namespace; the namespaces are in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.state.disk_entries import DiskEntries, DiskSpaces
from opchain.runtime.state.state_table import StateTable, StateTables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.runtime.state.descriptors import StateDescriptor


class DiskTable(StateTable):
    """See StateTable."""

    __slots__ = ("_on_disk",)

    def __init__(
        self,
        on_disk: DiskSpaces,
        name: str,
        kind: str,
        *,
        has_ttl: bool,
        descriptor: StateDescriptor[Any] | None,
    ) -> None:
        self._on_disk = on_disk
        self.name = name
        super().__init__(name, kind, has_ttl=has_ttl, descriptor=descriptor)

    def entries(self, namespace: Any) -> DiskEntries:
        """The entries of a namespace, as what they are."""
        found = self.space(namespace)
        assert isinstance(found, DiskEntries)
        return found

    def keys_in(self, namespace: Any) -> Iterable[Any]:
        """The keys of a namespace, to go over while it changes."""
        return self.spaces.get(namespace, ())

    def leave(self, namespace: Any) -> None:
        """See StateTable."""
        left = self.spaces.get(namespace)
        super().leave(namespace)
        if isinstance(left, DiskEntries) and namespace not in self.spaces:
            left.put_away()

    def _new_space(self) -> DiskEntries:
        return DiskEntries(self._on_disk, self.name)


class DiskTables(StateTables):
    """The states of one backend by name."""

    def __init__(self, on_disk: DiskSpaces) -> None:
        super().__init__()
        self.on_disk = on_disk

    def _made(
        self, name: str, kind: str, has_ttl: bool, descriptor: StateDescriptor[Any] | None
    ) -> DiskTable:
        return DiskTable(self.on_disk, name, kind, has_ttl=has_ttl, descriptor=descriptor)
