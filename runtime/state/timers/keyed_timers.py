"""The timers of one clock: a set of (time, namespace, key) that fires in order, and its changes by key group.

Timers fire by time. At equal times, time windows fire by their starts. Other namespaces fire in the order of their first
registration at this time, and the keys of a namespace in the order of registration. So timers without namespaces fire in
the order of registration. (Flink leaves this order open.) A timer that is registered while timers of the same time fire
comes after them.

There is one heap entry per time, and one dictionary per time and namespace. Triggers register the same timer for each
record, which is one look-up here. The end of a window is one heap entry, even with a million keys. If a time has only
one timer, as most times of session timers have, there is no dictionary. Such a timer takes 150 bytes instead of 500,
and at most two thirds of the time. Deleting a timer is a look-up, too. A time without timers leaves the heap when it
reaches the top, or when most times in the heap have no timers. Until then it keeps the places of namespaces, except of
VOID. So a time may be in the heap more than once.

For incremental checkpoints, a journal records the timers that were added and removed. The frame of a key group (see
keyed_snapshot.py) is then a pickle of (2, number, {name: (event changes, processing changes)}). The changes of a
service and clock are (dropped, removed, added):

- dropped: (time, namespace). All of its timers in this key group are gone.
- removed: (time, namespace, key). This timer is gone.
- added: (place, place of the namespace, time, namespace, key). The timer comes after the existing timers of its time,
  ordered by place over all key groups. The namespace also comes after the existing namespaces of the time, unless its
  place is -1.

A timer that was added and fired since the last snapshot is in none of these lists.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.keyed.keyed_changes import KEEPS_PLACE
from opchain.runtime.state.keyed.state_table import newest
from opchain.runtime.state.keys.key_identity import KeyIdentity, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opchain.runtime.state.keys.key_router import KeyRouter


if TYPE_CHECKING:
    Keys = dict[Any, None]
    Lone = tuple[Any, Any]

_SMALLEST_HEAP_TO_SWEEP = 64


class KeyedTimers:
    """The timers of one service and clock. Keys are state keys: see key_identity."""

    __slots__ = (
        "_by_time",
        "_heap",
        "_last",
        "_last_namespace",
        "_last_time",
        "_walks",
        "count",
        "journal",
    )

    def __init__(self) -> None:
        # By time: the keys of each namespace, or (namespace, state key) if there is only one timer.
        self._by_time: dict[int, dict[Any, Keys] | Lone] = {}
        self._heap: list[int] = []
        self.count = 0
        # The dictionary of the last timer, because windows register the same time for many records.
        self._last: Keys = {}
        self._last_time: int | None = None
        self._last_namespace: Any = None
        # For each time whose timers are firing, the timers that have not fired yet.
        self._walks: dict[int, Iterator[tuple[Any, Any]]] = {}
        # The timers that were added or removed since the last snapshot, and whether they existed then.
        # None if changes are not tracked.
        self.journal: dict[tuple[int, Any, Any], bool] | None = None

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[tuple[int, Any, Any]]:
        """(time, namespace, state key) of all timers, in order."""
        for time in sorted(self._by_time):
            found = self._by_time[time]
            if isinstance(found, tuple):
                yield time, *found
                continue
            for namespace, keys in found.items():
                for state_key in keys:
                    yield time, namespace, state_key

    def add(self, time: int, namespace: Any, state_key: Any) -> bool:
        """Registers a timer. Returns False if it was registered already."""
        keys: Keys | None = None
        if time == self._last_time and namespace is self._last_namespace:
            keys = self._last
        elif time not in self._by_time:
            hash(state_key)  # raises if no key is current
            self._by_time[time] = namespace, state_key
            heapq.heappush(self._heap, time)
        elif self._by_time[time] == (namespace, state_key):
            return False
        else:
            keys = self._keys(time, namespace)
        if keys is not None:
            if state_key in keys:
                return False
            keys[state_key] = None
        self.count += 1
        if self.journal is not None:
            self.journal.setdefault((time, namespace, state_key), False)
        return True

    def discard(self, time: int, namespace: Any, state_key: Any) -> None:
        """Deletes a timer, if there is one."""
        found = self._by_time.get(time)
        if found.__class__ is tuple:
            if found != (namespace, state_key):
                return
            if namespace is VOID:
                del self._by_time[time]
            else:
                self._by_time[time] = {namespace: {}}
        else:
            keys = found.get(namespace) if isinstance(found, dict) else None
            if keys is None or state_key not in keys:
                return
            del keys[state_key]
        self._removed(time, namespace, state_key)
        if len(self._heap) > max(_SMALLEST_HEAP_TO_SWEEP, 2 * self.count):
            self._sweep()

    def next_time(self) -> int | None:
        """The time of the first timer, or None."""
        heap = self._heap
        while heap:
            found = self._by_time.get(heap[0], {})
            if isinstance(found, tuple) or any(found.values()):
                return heap[0]
            self._drop_first_time()
        return None

    def pop_until(self, time: int) -> tuple[int, Any, Any] | None:
        """Removes and returns the first timer, (time, namespace, state key), if it is due at a time."""
        return next(self.due(time), None)

    def due(self, time: int) -> Iterator[tuple[int, Any, Any]]:
        """Removes and yields the timers that are due at a time. Between two of them, timers may be added and deleted."""
        while self._heap and self._heap[0] <= time:
            first = self._heap[0]
            namespaces = self._by_time.get(first)
            if namespaces is None:
                self._drop_first_time()
                continue
            if isinstance(namespaces, tuple):
                heapq.heappop(self._heap)
                del self._by_time[first]
                namespace, state_key = namespaces
                self._removed(first, namespace, state_key)
                yield first, namespace, state_key
                continue
            walk = self._walks.get(first)
            if walk is None:
                walk = self._walks[first] = _walk(namespaces)
            for namespace, state_key in walk:
                del namespaces[namespace][state_key]
                self._removed(first, namespace, state_key)
                yield first, namespace, state_key
                if self._heap[0] < first:
                    break  # an earlier timer was added
            else:
                self._walks.pop(first, None)
                if not any(namespaces.values()):
                    self._drop_first_time()

    def at(self, time: int) -> dict[Any, Keys]:
        """The keys of each namespace that has timers at a time. Do not change the dictionary."""
        found = self._by_time.get(time)
        if isinstance(found, tuple):
            namespace, state_key = found
            found = self._by_time[time] = {namespace: {state_key: None}}
        return {} if found is None else found

    def put_last(self, time: int, namespaces: Iterable[Any]) -> None:
        """Moves the timers of some namespaces after all other timers of a time, in this order."""
        known = self.at(time)
        for namespace in namespaces:
            if namespace in known:
                known[namespace] = known.pop(namespace)

    def forget_empty(self, time: int, namespaces: Iterable[Any]) -> None:
        """Drops namespaces that have no timers left at a time.

        A time whose timers are firing keeps all namespaces, and so their places in the order.
        """
        known = self._by_time.get(time)
        if known is None or isinstance(known, tuple) or time in self._walks:
            return
        for namespace in namespaces:
            if not known.get(namespace, True):
                del known[namespace]
                if time == self._last_time:
                    self._last_time = None

    def _removed(self, time: int, namespace: Any, state_key: Any) -> None:
        self.count -= 1
        if self.journal is not None:
            self.journal.setdefault((time, namespace, state_key), True)

    def _keys(self, time: int, namespace: Any) -> Keys:
        """The keys of a namespace at a time that is in the heap."""
        namespaces = self.at(time)
        keys = namespaces.get(namespace)
        if keys is None:
            keys = namespaces[namespace] = {}
        self._last, self._last_time, self._last_namespace = keys, time, namespace
        return keys

    def _drop_first_time(self) -> None:
        time = heapq.heappop(self._heap)
        self._by_time.pop(time, None)
        self._walks.pop(time, None)  # its timers may have been taken one by one
        if time == self._last_time:
            self._last_time = None

    def _sweep(self) -> None:
        """Drops the times without timers, except those whose timers are firing."""
        self._by_time = {
            time: namespaces
            for time, namespaces in self._by_time.items()
            if time in self._walks or isinstance(namespaces, tuple) or any(namespaces.values())
        }
        self._heap = list(self._by_time)
        heapq.heapify(self._heap)
        self._last_time = None


def _walk(namespaces: dict[Any, Keys]) -> Iterator[tuple[Any, Any]]:
    """(namespace, state key) of the timers that exist at first and are not deleted during the iteration."""
    for namespace in sorted(namespaces, key=_start):
        keys = namespaces[namespace]
        for state_key in list(keys):
            if state_key in keys:
                yield namespace, state_key


def _start(namespace: Any) -> int:
    return namespace.start if isinstance(namespace, TimeWindow) else 0


if TYPE_CHECKING:
    Changed = tuple[list[tuple[int, Any]], list[tuple[int, Any, Any]], list["Added"]]
    Added = tuple[int, int, int, Any, Any]


@dataclass(slots=True)
class TimerChanges:
    """The changes of one service and clock. Keys are state keys.

    Rows of `dropped` are (time, namespace, key groups whose timers are all gone). Rows of `added` are (place of the
    namespace, time, namespace, state key), in order.
    """

    dropped: list[tuple[int, Any, Iterable[int]]] = field(default_factory=list)
    removed: list[tuple[int, Any, Any]] = field(default_factory=list)
    added: list[tuple[int, int, Any, Any]] = field(default_factory=list)

    def extend(self, others: TimerChanges) -> None:
        """Appends other changes."""
        self.dropped += others.dropped
        self.removed += others.removed
        self.added += others.added


def journaled(timers: KeyedTimers) -> TimerChanges:
    """The changes that the journal of timers adds up to."""
    changes = TimerChanges()
    journal = timers.journal or {}
    touched: dict[int, dict[Any, dict[Any, None]]] = {}
    for (time, namespace, state_key), was_there in journal.items():
        keys = touched.setdefault(time, {}).setdefault(namespace, {})
        if state_key in timers.at(time).get(namespace, ()):
            keys[state_key] = None
        elif was_there:
            changes.removed.append((time, namespace, state_key))
    for time, namespaces in sorted(touched.items(), key=_time):
        timers.forget_empty(time, namespaces)
        waiting = timers.at(time)
        # A namespace without added timers keeps its place, and so do the namespaces before it.
        grown = {name: keys for name, keys in namespaces.items() if keys}
        place_of = {name: place for place, name in enumerate(newest(waiting, grown))}
        # Namespaces that come last, in their order; then those that keep their places.
        for namespace in (*place_of, *(name for name in namespaces if name not in place_of)):
            place = place_of.get(namespace, KEEPS_PLACE)
            for state_key in newest(waiting.get(namespace, {}), namespaces[namespace]):
                changes.added.append((place, time, namespace, state_key))
    return changes


def forget_empty(timers: KeyedTimers) -> None:
    """Drops empty namespaces, which a full snapshot does not contain, so that a restore keeps the same order."""
    for time, namespace, _ in timers.journal or ():
        timers.forget_empty(time, (namespace,))


def by_key_group(changes: TimerChanges, router: KeyRouter) -> dict[int, Changed]:
    """The changes in the form of frames, by key group."""
    groups: dict[int, Changed] = {}
    for time, namespace, key_groups in changes.dropped:
        for group in dict.fromkeys(key_groups):
            groups.setdefault(group, ([], [], []))[0].append((time, namespace))
    keys = [key_of(row[-1]) for row in (*changes.removed, *changes.added)]
    numbers = iter(router.key_groups_of(keys))
    key = iter(keys)
    for time, namespace, _ in changes.removed:
        groups.setdefault(next(numbers), ([], [], []))[1].append((time, namespace, next(key)))
    for place, (namespace_place, time, namespace, _) in enumerate(changes.added):
        row = (place, namespace_place, time, namespace, next(key))
        groups.setdefault(next(numbers), ([], [], []))[2].append(row)
    return groups


def apply_changes(
    timers: KeyedTimers,
    changes: Sequence[tuple[int, Changed]],
    identity: KeyIdentity,
    router: KeyRouter,
) -> None:
    """Applies the changes of all key groups, given as (key group, changes)."""
    dropped: dict[tuple[int, Any], set[int]] = {}
    touched: dict[int, dict[Any, None]] = {}
    added: list[tuple[int, int, int, int, Any, Any]] = []
    for group, (gone, removed, new) in changes:
        for time, namespace in gone:
            dropped.setdefault((time, namespace), set()).add(group)
        for time, namespace, key in removed:
            timers.discard(time, namespace, identity.of(key))
            touched.setdefault(time, {})[namespace] = None
        added += ((place, group, *row) for place, *row in new)
    for (time, namespace), groups in dropped.items():
        _drop(timers, time, namespace, groups, router)
        touched.setdefault(time, {})[namespace] = None
    last: dict[int, dict[Any, int]] = {}
    for _, _, namespace_place, time, namespace, key in sorted(added, key=_place):
        state_key = identity.of(key)
        timers.discard(time, namespace, state_key)
        timers.add(time, namespace, state_key)
        if namespace_place != KEEPS_PLACE:
            last.setdefault(time, {})[namespace] = namespace_place
    for time, places in last.items():
        timers.put_last(time, sorted(places, key=places.__getitem__))
    for time, namespaces in touched.items():
        timers.forget_empty(time, namespaces)


def _drop(
    timers: KeyedTimers, time: int, namespace: Any, groups: set[int], router: KeyRouter
) -> None:
    keys = list(timers.at(time).get(namespace, ()))
    numbers = router.key_groups_of([key_of(key) for key in keys])
    for state_key, group in zip(keys, numbers, strict=True):
        if group in groups:
            timers.discard(time, namespace, state_key)


def _time(item: tuple[int, Any]) -> int:
    return item[0]


def _place(item: tuple[Any, ...]) -> tuple[int, int]:
    return item[0], item[1]
