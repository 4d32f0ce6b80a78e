"""Which timers came and went since the last snapshot, as bytes per key group.

The frame of a key group (see keyed_frames) is a pickle of (2, number, {name: (event changes, processing
changes)}); changes of a service and clock are (dropped, removed, added):

- dropped: (time, namespace), whose timers of this key group are gone, all of them;
- removed: (time, namespace, key), gone;
- added: (place, place of the namespace, time, namespace, key). At its time a timer comes behind
  those that were there, in the order of places over all key groups; likewise the namespace, among those of
  the time, unless its place is -1: then it keeps the place that it has.

A timer that was added and has fired since the last snapshot is in none of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opchain.runtime.state.key_identity import key_of
from opchain.runtime.state.keyed_changes import KEEPS_PLACE
from opchain.runtime.state.touched_state import newest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.runtime.state.key_identity import KeyIdentity
    from opchain.runtime.state.key_router import KeyRouter
    from opchain.runtime.state.keyed_timers import KeyedTimers

    Changed = tuple[list[tuple[int, Any]], list[tuple[int, Any, Any]], list["Added"]]
    Added = tuple[int, int, int, Any, Any]


@dataclass(slots=True)
class TimerChanges:
    """The changes of one service and clock; keys are state keys.

    `dropped` has the key groups for which all timers of a time and namespace are gone. `added` rows are
    (place of the namespace, time, namespace, state key), in order.
    """

    dropped: list[tuple[int, Any, Iterable[int]]] = field(default_factory=list)
    removed: list[tuple[int, Any, Any]] = field(default_factory=list)
    added: list[tuple[int, int, Any, Any]] = field(default_factory=list)

    def extend(self, others: TimerChanges) -> None:
        """Takes others in, behind these."""
        self.dropped += others.dropped
        self.removed += others.removed
        self.added += others.added


def journaled(timers: KeyedTimers) -> TimerChanges:
    """What the journal of timers comes to."""
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
        # One that nothing was added to keeps its place, and so do those before it.
        grown = {name: keys for name, keys in namespaces.items() if keys}
        place_of = {name: place for place, name in enumerate(newest(waiting, grown))}
        # Namespaces that come last, in their order; then those that keep their places.
        for namespace in (*place_of, *(name for name in namespaces if name not in place_of)):
            place = place_of.get(namespace, KEEPS_PLACE)
            for state_key in newest(waiting.get(namespace, {}), namespaces[namespace]):
                changes.added.append((place, time, namespace, state_key))
    return changes


def forget_empty(timers: KeyedTimers) -> None:
    """Forgets the places that a whole snapshot doesn't keep, so that order goes on the same after a restore."""
    for time, namespace, _ in timers.journal or ():
        timers.forget_empty(time, (namespace,))


def by_key_group(changes: TimerChanges, router: KeyRouter) -> dict[int, Changed]:
    """The changes as they are written."""
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
    """Takes in the changes of all key groups, as (key group, changes)."""
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
