"""How much state an operator holds and writes, for progress alone: nothing is decided by it."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot

CHEAP_S = 0.002
"""Counting that takes longer than this is not done in every epoch."""


@dataclass(frozen=True, slots=True)
class StateSize:
    """Of one subtask of an operator at the end of an epoch.

    Attributes:
        entries: How many pairs of key and namespace (a window) hold something, over all its keyed states.
        written_bytes: What it wrote in the epoch, before the file puts its own around it.
    """

    entries: int
    written_bytes: int


class EntryCount:
    """Counts the entries of one backend.

    That is a look per namespace, and sessions have as many of these as keys: where it takes long, the last
    count stands until the state is written whole, which takes longer still.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._count = 0
        self._took_s = 0.0

    def of(self, backend: KeyedStateBackend, *, is_whole: bool) -> int:
        """The number, exact if the state is written whole now or counting is cheap."""
        if is_whole or self._took_s <= CHEAP_S:
            started = self._clock()
            self._count = backend.entry_count()
            self._took_s = self._clock() - started
        return self._count


def snapshot_bytes(snapshot: OperatorSnapshot) -> int:
    """The bytes of what an operator hands over to a checkpoint."""
    operator = snapshot.operator
    parts = (
        *snapshot.keyed.values(),
        *snapshot.timers.values(),
        *operator.maps.values(),
        *(item for _, items in operator.lists.values() for item in items),
    )
    return sum(map(len, parts))
