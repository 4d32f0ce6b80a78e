"""The tables of a hash map backend as bytes and back: whole, or what has changed.

See keyed_snapshot and keyed_changes for what is written. Whoever writes to the tables (HashMapKeyedStateBackend, the
states, operators) notes in `_touched` and in the tables where changes are possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError
from opchain.runtime.records.garbage_collection import collector_paused
from opchain.runtime.state.keyed.keyed_backend import VOID, KeyedStateBackend
from opchain.runtime.state.keyed.keyed_changes import apply_frames, write_changes
from opchain.runtime.state.keyed.keyed_snapshot import in_order, read_tables, write_tables
from opchain.runtime.state.keyed.state_table import StateTables, TouchedNamespaces
from opchain.runtime.state.keys.key_identity import key_of
from opchain.runtime.state.keys.key_router import KeyRouter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from opchain.runtime.state.keyed.state_table import StateTable
    from opchain.runtime.state.keys.java_hash import Hasher
    from opchain.runtime.state.keys.key_groups import KeyGroupRange
    from opchain.runtime.state.keys.key_identity import KeyIdentity


class HashMapSnapshots(KeyedStateBackend):
    """What a hash map backend does with all of its tables at once; see HashMapKeyedStateBackend."""

    __slots__ = (
        "_hasher",
        "_made_router",
        "_next_number",
        "_now",
        "_tables",
        "_touched",
        "_where",
        "identity",
        "key_groups",
        "max_parallelism",
    )

    def __init__(
        self,
        max_parallelism: int,
        key_groups: KeyGroupRange,
        identity: KeyIdentity,
        hasher: Hasher | None,
        now: Callable[[], int],
        where: str,
    ) -> None:
        self.max_parallelism = max_parallelism
        self.key_groups = key_groups
        self.identity = identity
        self._hasher = hasher
        self._now = now
        self._where = where
        self._tables = self._new_tables()
        self._made_router: KeyRouter | None = None
        # The keys that were touched since the last snapshot; None while changes are not tracked. The number
        # of the next changes is 0 where they would not be complete.
        self._touched: dict[Any, None] | None = None
        self._next_number = 0

    def _new_tables(self) -> StateTables:
        return StateTables()

    def snapshot(self) -> dict[int, bytes]:
        """See KeyedStateBackend."""
        with collector_paused():
            written = write_tables(self._tables.values(), self._router, self._now)
        self._begin_changes(1)
        return written

    def restore(self, snapshots: Iterable[Mapping[int, bytes]]) -> None:
        """See KeyedStateBackend."""
        last = 0
        with collector_paused():
            frames = in_order(snapshots, self.key_groups, "a snapshot of keyed state", self._where)
            for last, of_number in frames:
                if last == 0:
                    read_tables(of_number, self._tables, self.identity, self._where)
                else:
                    apply_frames(of_number, self._tables, self.identity, self._router, self._where)
        number = max(last + 1, self._next_number)
        self._begin_changes(number)
        self._next_number = number  # also for who begins to track now, before anything changes

    # Changes

    def track_changes(self) -> None:
        """See KeyedStateBackend."""
        if self._touched is None:
            self._touched = {}
            for table in self._tables.values():
                table.touched = TouchedNamespaces()

    @property
    def tracks_changes(self) -> bool:
        """See KeyedStateBackend."""
        return self._touched is not None and self._next_number > 0

    def touch(self, keys: Iterable[Any]) -> None:
        """See KeyedStateBackend."""
        if self._touched is not None:
            plain, identify = self.identity.plain, self.identity.of
            for key in keys:
                self._touched[key if key.__class__ in plain else identify(key)] = None

    def touched_keys(self) -> dict[Any, None]:
        """See KeyedStateBackend."""
        return self._touched or {}

    def write_to(self, name: str, namespaces: Iterable[Any]) -> None:
        """See KeyedStateBackend."""
        touched = self._tables[name].touched
        if touched is not None:
            touched.written_to.update(dict.fromkeys(namespaces))

    def drop(self, name: str, namespace: Any) -> None:
        """See KeyedStateBackend."""
        table = self._tables[name]
        entries = table.space(namespace)
        if table.touched is not None:
            table.touched.note_dropped(namespace, self.key_groups_of(entries))
        entries.clear()
        table.leave(namespace)

    def key_groups_of(self, state_keys: Collection[Any]) -> Iterable[int]:
        """See KeyedStateBackend."""
        if len(state_keys) >= len(self.key_groups):
            return self.key_groups
        return self._router.key_groups_of(list(map(key_of, state_keys)))

    def snapshot_changes(self) -> dict[int, bytes]:
        """See KeyedStateBackend."""
        if self._touched is None or not self.tracks_changes:
            raise StateError(
                f"{self._where}: changes of keyed state were requested, but are not tracked; "
                f"call track_changes(), and take a full snapshot first"
            )
        number = self._next_number
        with collector_paused():
            written = write_changes(self._tables.values(), self._touched, number, self._router)
        self._begin_changes(number + 1)
        return written

    def apply_changes(self, changes: Mapping[int, bytes]) -> None:
        """See KeyedStateBackend."""
        self.restore([changes])

    @property
    def _router(self) -> KeyRouter:
        """What numbers the key groups of keys; made when first needed, as most tasks take no snapshot."""
        if self._made_router is None:
            self._made_router = KeyRouter(self.max_parallelism, 1, self._hasher)
        return self._made_router

    def _begin_changes(self, number: int) -> None:
        """From here on what changes is noted for the frames of this number."""
        if self._touched is None:
            self._next_number = 0
            return
        self._next_number = number
        self._touched = {}
        for table in self._tables.values():
            if table.touched is None:
                table.touched = TouchedNamespaces()
            table.touched.clear()

    def _note_cleanup(self, table: StateTable, namespace: Any, state_key: Any) -> None:
        if self._touched is None:
            return
        if namespace is VOID:
            self._touched[state_key] = None
        elif table.touched is not None:
            table.touched.note(namespace, state_key)
