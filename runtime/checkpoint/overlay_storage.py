"""A storage that is read and never changed: what is written stays in memory, above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.storage import CheckpointStorage

if TYPE_CHECKING:
    from collections.abc import Iterable


class OverlayStorage(CheckpointStorage):
    """What the storage below has, and what was written since; for one process."""

    def __init__(self, below: CheckpointStorage) -> None:
        self.url = below.url
        self.key = below.key
        self._below = below
        self._written: dict[str, bytes] = {}
        self._deleted: set[str] = set()

    def write(self, name: str, data: bytes) -> None:
        """Keeps a file."""
        self._written[name] = data
        self._deleted.discard(name)

    def publish(self, name: str, data: bytes) -> None:
        """Keeps a file whose name is free."""
        if name in self.names(name.rpartition("/")[0]):
            raise FileExistsError(self.full_name(name))
        self.write(name, data)

    def read(self, name: str) -> bytes:
        """What was written last."""
        if name in self._deleted:
            raise FileNotFoundError(self.full_name(name))
        found = self._written.get(name)
        return self._below.read(name) if found is None else found

    def names(self, prefix: str = "") -> list[str]:
        """Those of both."""
        folder = f"{prefix}/" if prefix else ""
        return self._visible(
            self._below.names(prefix), (name for name in self._written if name.startswith(folder))
        )

    def children(self, folder: str = "") -> list[str]:
        """Those of both; a folder stays, also without files."""
        start = f"{folder}/" if folder else ""
        own = {
            name.removeprefix(start).partition("/")[0]
            for name in self._written
            if name.startswith(start)
        }
        gone = {name.removeprefix(start) for name in self._deleted if name.startswith(start)}
        return sorted((set(self._below.children(folder)) - gone) | own)

    def delete(self, name: str) -> None:
        """Hides a file."""
        self._written.pop(name, None)
        self._deleted.add(name)

    def _visible(self, below: Iterable[str], own: Iterable[str]) -> list[str]:
        return sorted((set(below) - self._deleted) | set(own))
