"""Keyed state on the local disk, for more of it than memory holds: see keyed_backend for the contract.

It is the hash map backend over tables whose entries are in a RocksDB database (disk_entries), with states that
copy (rocksdb_states). In memory are what was used lately, the namespaces that hold something, the keys touched
since the last checkpoint, and the timers: Flink's setting for these would be `HEAP`, which is its default, too.
Snapshots and changes are in the one form that all backends write and read, so a checkpoint or savepoint of
one can be restored in the other.

Flink: `EmbeddedRocksDBStateBackend`, `RocksDBKeyedStateBackend`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.state.collector_pause import collector_paused
from opchain.runtime.state.disk_entries import DiskSpaces
from opchain.runtime.state.disk_snapshots import restore_empty, write_disk_tables
from opchain.runtime.state.disk_table import DiskTables
from opchain.runtime.state.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.local_database import LocalDatabase
from opchain.runtime.state.rocksdb_states import STATES, TTL_STATES
from opchain.runtime.task.mailbox.timer_service import wall_clock_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opchain.runtime.state.java_hash import Hasher
    from opchain.runtime.state.key_groups import KeyGroupRange
    from opchain.runtime.state.key_identity import KeyIdentity


class RocksDBKeyedStateBackend(HashMapKeyedStateBackend):
    """The keyed state of one operator's subtask; the arguments are those of HashMapKeyedStateBackend.

    Args:
        max_parallelism: The number of all key groups.
        key_groups: Those of this subtask; all of them if not given.
        identity: How keys are told apart.
        hasher: The hash code of keys, where their type declares another than their class's.
        now: The clock of states with a time to live, in milliseconds.
        where: The operator and its call site, for messages.
        folders: Where on the local disk; see LocalDatabase.

    Raises:
        MissingLibraryError: rocksdict is not installed.
    """

    __slots__ = ("_database", "_on_disk")

    _kinds = STATES
    _kinds_with_ttl = TTL_STATES

    def __init__(
        self,
        max_parallelism: int = 128,
        key_groups: KeyGroupRange | None = None,
        *,
        identity: KeyIdentity | None = None,
        hasher: Hasher | None = None,
        now: Callable[[], int] = wall_clock_ms,
        where: str = "the operator",
        folders: Sequence[str] = (),
    ) -> None:
        self._database = LocalDatabase(folders, where)
        self._on_disk = DiskSpaces(self._database, where)
        super().__init__(
            max_parallelism, key_groups, identity=identity, hasher=hasher, now=now, where=where
        )
        self._is_watched = True  # what is at hand is looked after whenever a key is selected

    def _new_tables(self) -> DiskTables:
        return DiskTables(self._on_disk)

    def _before_selecting(self, state_key: Any) -> None:
        super()._before_selecting(state_key)
        self._on_disk.trim()

    def touch(self, keys: Iterable[Any]) -> None:
        """See KeyedStateBackend."""
        super().touch(keys)
        self._on_disk.trim()

    def close(self) -> None:
        """See KeyedStateBackend."""
        self._database.close()

    # Snapshots

    def snapshot(self) -> dict[int, bytes]:
        """See KeyedStateBackend."""
        with collector_paused():
            written = write_disk_tables(self._tables, self._router, self._now)  # type: ignore[arg-type]
        self._begin_changes(1)
        return written

    def restore(self, snapshots: Iterable[Mapping[int, bytes]]) -> None:
        """See KeyedStateBackend."""
        if not self._on_disk.is_untouched:
            super().restore(snapshots)
            return
        with collector_paused():
            last = restore_empty(
                list(snapshots),
                self._tables,  # type: ignore[arg-type]
                self.key_groups,
                self.identity,
                self._where,
            )
        number = max(last + 1, self._next_number)
        self._begin_changes(number)
        self._next_number = number
