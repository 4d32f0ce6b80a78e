"""Timers of one clock, waiting: a set of (time, namespace, key), given out in order.

The earliest comes first. Among equal times the namespace that was registered first at that time comes
first, and within a namespace the key; so timers without namespaces come in the order of registration.
(Flink leaves this order open.) A timer that is registered while timers of its time are given out comes
after those that were there.

There is one heap entry per time and one dictionary per time and namespace: registering the same timer
again, which triggers do for each record, is one look-up, and a window's end with a million keys is one
entry. Deleting is a look-up, too: times without timers leave the heap when they come to its top, or
when they are the most of it.

What is added and removed can be noted, for checkpoints that keep changes alone: see timer_changes.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Keys = dict[Any, None]

_SMALLEST_HEAP_TO_SWEEP = 64


class KeyedTimers:
    """The timers of one service and clock. Keys are state keys: see key_identity."""

    __slots__ = (
        "_by_time",
        "_count",
        "_heap",
        "_last",
        "_last_namespace",
        "_last_time",
        "_walks",
        "journal",
    )

    def __init__(self) -> None:
        self._by_time: dict[int, dict[Any, Keys]] = {}
        self._heap: list[int] = []
        self._count = 0
        # Where the last timer was put: windows register the same time for record after record.
        self._last: Keys = {}
        self._last_time: int | None = None
        self._last_namespace: Any = None
        # Of each time whose timers are being given out, those that are still to come.
        self._walks: dict[int, Iterator[tuple[Any, Any]]] = {}
        # The timers that were added or removed since the last snapshot, and whether they were there
        # before; None while nobody notes them.
        self.journal: dict[tuple[int, Any, Any], bool] | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[int, Any, Any]]:
        """(time, namespace, state key) of all timers, in order."""
        for time in sorted(self._by_time):
            for namespace, keys in self._by_time[time].items():
                for state_key in keys:
                    yield time, namespace, state_key

    def add(self, time: int, namespace: Any, state_key: Any) -> bool:
        """Registers a timer; False where it is registered already."""
        if time == self._last_time and namespace is self._last_namespace:
            keys = self._last
        else:
            keys = self._keys(time, namespace)
        if state_key in keys:
            return False
        keys[state_key] = None
        self._count += 1
        if self.journal is not None:
            self.journal.setdefault((time, namespace, state_key), False)
        return True

    def discard(self, time: int, namespace: Any, state_key: Any) -> None:
        """Takes a timer back; nothing happens where there is none."""
        keys = self._by_time.get(time, {}).get(namespace)
        if keys is None or state_key not in keys:
            return
        del keys[state_key]
        self._removed(time, namespace, state_key)
        if len(self._heap) > max(_SMALLEST_HEAP_TO_SWEEP, 2 * self._count):
            self._sweep()

    def next_time(self) -> int | None:
        """The time of the first timer, or None."""
        heap = self._heap
        while heap:
            if any(self._by_time[heap[0]].values()):
                return heap[0]
            self._drop_first_time()
        return None

    def pop_until(self, time: int) -> tuple[int, Any, Any] | None:
        """Gives out the first timer, if it is not later than a time: (time, namespace, state key)."""
        heap = self._heap
        while heap and heap[0] <= time:
            first = heap[0]
            namespaces = self._by_time[first]
            walk = self._walks.get(first)
            if walk is None:
                if len(namespaces) == 1:
                    ((namespace, keys),) = namespaces.items()
                    if len(keys) == 1:  # alone at its time, as many timers are
                        self._drop_first_time()
                        state_key = keys.popitem()[0]
                        self._removed(first, namespace, state_key)
                        return first, namespace, state_key
                walk = self._walks[first] = _walk(namespaces)
            found = next(walk, None)
            if found is not None:
                namespace, state_key = found
                del namespaces[namespace][state_key]
                self._removed(first, namespace, state_key)
                return first, namespace, state_key
            del self._walks[first]
            if not any(namespaces.values()):
                self._drop_first_time()
        return None

    def count_of(self, namespace: Any) -> int:
        """How many timers a namespace has."""
        return sum(len(namespaces.get(namespace, ())) for namespaces in self._by_time.values())

    def at(self, time: int) -> dict[Any, Keys]:
        """The keys of each namespace that has timers at a time; not to be changed."""
        return self._by_time.get(time, {})

    def put_last(self, time: int, namespaces: Iterable[Any]) -> None:
        """Has timers of some namespaces come behind all others of a time, in this order."""
        known = self._by_time.get(time, {})
        for namespace in namespaces:
            if namespace in known:
                known[namespace] = known.pop(namespace)

    def forget_empty(self, time: int, namespaces: Iterable[Any]) -> None:
        """Forgets the places of namespaces that have no timers left at a time.

        While its timers are given out, a time keeps all places.
        """
        known = self._by_time.get(time)
        if known is None or time in self._walks:
            return
        for namespace in namespaces:
            if not known.get(namespace, True):
                del known[namespace]
                if time == self._last_time:
                    self._last_time = None

    def _removed(self, time: int, namespace: Any, state_key: Any) -> None:
        self._count -= 1
        if self.journal is not None:
            self.journal.setdefault((time, namespace, state_key), True)

    def _keys(self, time: int, namespace: Any) -> Keys:
        namespaces = self._by_time.get(time)
        if namespaces is None:
            namespaces = self._by_time[time] = {}
            heapq.heappush(self._heap, time)
        keys = namespaces.get(namespace)
        if keys is None:
            keys = namespaces[namespace] = {}
        self._last, self._last_time, self._last_namespace = keys, time, namespace
        return keys

    def _drop_first_time(self) -> None:
        time = heapq.heappop(self._heap)
        del self._by_time[time]
        if time == self._last_time:
            self._last_time = None

    def _sweep(self) -> None:
        """Drops the times without timers, but those whose timers are being given out."""
        self._by_time = {
            time: namespaces
            for time, namespaces in self._by_time.items()
            if time in self._walks or any(namespaces.values())
        }
        self._heap = list(self._by_time)
        heapq.heapify(self._heap)
        self._last_time = None


def _walk(namespaces: dict[Any, Keys]) -> Iterator[tuple[Any, Any]]:
    """(namespace, state key) of the timers that are there at first and are not taken back meanwhile."""
    for namespace in list(namespaces):
        keys = namespaces[namespace]
        for state_key in list(keys):
            if state_key in keys:
                yield namespace, state_key
