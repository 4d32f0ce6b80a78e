"""Removes expired state a few entries at a time, while the state is used.

Each run looks at a fixed number of keys and continues where the last one ended. A round goes over the keys
as they are when it comes to their namespace; that copy of their references is the only work that is
not bounded by the number, some nanoseconds per key and round.

Flink: `TtlIncrementalCleanup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

    from opchain.runtime.state.keyed.state_table import StateTable
    from opchain.runtime.state.keyed.ttl_states import TimeToLive


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
