"""Changes of keyed state as bytes per key group, which follow a snapshot.

The frame of a key group (see keyed_snapshot.py) is a pickle of

    (2, number, keys, {name: (kind, has_ttl, rows, spaces)})

- `keys` are the keys of the key group that changed. Their contents without a namespace are in `rows`. A key without a
  row has lost its contents.
- A row is (place, index of the key, contents). With the place -1 a key keeps its place among the keys. Rows with other
  places come after all existing keys, ordered by place over all key groups.
- `spaces` are (namespace, gone, rows). `gone` are the keys that left a namespace, or None if all keys of this key group
  did. The rows are as above, but contain the key itself instead of an index.

The size of a frame depends only on the contents of the changed keys. The order of namespaces is not kept.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.keyed.keyed_snapshot import CHANGES, pickled, require
from opchain.runtime.state.keyed.state_table import StateTable, StateTables, newest
from opchain.runtime.state.keys.key_identity import KeyIdentity, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping, Sequence

    from opchain.runtime.state.keyed.keyed_snapshot import Frame
    from opchain.runtime.state.keys.key_router import KeyRouter

    Row = tuple[int, Any, Any]
    Space = tuple[Any, list[Any] | None, list[Row]]
    Changed = tuple[str, bool, list[Row], list[Space]]

KEEPS_PLACE = -1


def write_changes(
    tables: Iterable[StateTable], touched: dict[Any, None], number: int, router: KeyRouter
) -> dict[int, bytes]:
    """The changes of tables, by key group.

    Raises:
        StateError: Something in a state can't be pickled.
    """
    tables = list(tables)
    writer = _Writer(touched, _group_of(tables, touched, router))
    for table in tables:
        writer.add(table)
    return {
        group: pickled((CHANGES, number, keys, states))
        for group, (keys, states) in sorted(writer.groups.items())
    }


class _Writer:
    """Collects changes by key group: (touched keys, states)."""

    def __init__(self, touched: dict[Any, None], group_of: dict[Any, int]) -> None:
        self.groups: dict[int, tuple[list[Any], dict[str, Changed]]] = {}
        self._touched = touched
        self._group_of = group_of
        self._index_of: dict[Any, int] = {}
        for key in touched:
            keys, _ = self.groups.setdefault(group_of[key], ([], {}))
            self._index_of[key] = len(keys)
            keys.append(key_of(key))

    def add(self, table: StateTable) -> None:
        """Adds the changes of a table."""
        for key, place, contents in _rows(table.spaces[VOID], self._touched):
            row = (place, self._index_of[key], contents)
            self._changed(self._group_of[key], table)[2].append(row)
        if table.touched is None:
            return
        for namespace, groups in table.touched.dropped.items():
            for group in groups:
                self._changed(group, table)[3].append((namespace, None, []))
        for namespace in dict.fromkeys((*table.touched.pairs, *table.touched.written_to)):
            for group, (gone, rows) in self._of_namespace(table, namespace).items():
                self._changed(group, table)[3].append((namespace, gone, rows))

    def _changed(self, group: int, table: StateTable) -> Changed:
        _, states = self.groups.setdefault(group, ([], {}))
        return states.setdefault(table.name, (table.kind, table.has_ttl, [], []))

    def _of_namespace(
        self, table: StateTable, namespace: Any
    ) -> dict[int, tuple[list[Any], list[Row]]]:
        """By key group, the keys that were removed from a namespace, and the rows."""
        assert table.touched is not None
        entries = table.spaces.get(namespace, {})
        noted = table.touched.pairs.get(namespace, {})
        counting = noted
        if namespace in table.touched.written_to:
            counting = self._touched | noted if noted else self._touched
        found: dict[int, tuple[list[Any], list[Row]]] = {}
        for key in noted:
            if key not in entries:
                found.setdefault(self._group_of[key], ([], []))[0].append(key_of(key))
        for key, place, contents in _rows(entries, counting):
            row = (place, key_of(key), contents)
            found.setdefault(self._group_of[key], ([], []))[1].append(row)
        return found


def apply_frames(
    frames: Sequence[tuple[int, Frame]],
    tables: StateTables,
    identity: KeyIdentity,
    router: KeyRouter,
    where: str,
) -> None:
    """Applies the changes of one number, of all key groups together.

    Raises:
        StateError: A state is of another kind than before.
    """
    for _, (_, _, _, states) in frames:
        for name, (kind, has_ttl, _, _) in states.items():
            require(tables, name, kind, where, has_ttl=has_ttl)
    _drop(frames, tables, router)
    target = _Target(tables)
    plain, identify = identity.plain, identity.of
    for group, (_, _, keys, states) in frames:
        state_keys = [key if key.__class__ in plain else identify(key) for key in keys]
        for name, table in tables.items():
            _, _, rows, spaces = states.get(name, ("", False, [], []))
            target.clear(table, state_keys, rows)
            target.take(group, table, VOID, [(row[0], state_keys[row[1]], row[2]) for row in rows])
            for namespace, gone, of_space in spaces:
                entries = table.space(namespace)
                for key in gone or ():
                    entries.pop(identify(key), None)
                found = [(place, identify(key), kept) for place, key, kept in of_space]
                target.take(group, table, namespace, found)
    target.put_last()


class _Target:
    """Applies changes to tables. New keys are appended last, in the order of their places over all key groups."""

    def __init__(self, tables: StateTables) -> None:
        self._tables = tables
        self._last: dict[tuple[str, Any], list[tuple[int, int, Any, Any]]] = {}

    def clear(self, table: StateTable, state_keys: list[Any], rows: list[Row]) -> None:
        """Removes the touched keys that have no row."""
        entries = table.spaces[VOID]
        kept = {index for _, index, _ in rows}
        for index, state_key in enumerate(state_keys):
            if index not in kept and state_key in entries:
                del entries[state_key]

    def take(self, group: int, table: StateTable, namespace: Any, rows: list[Row]) -> None:
        """Applies rows of (place, state key, contents)."""
        entries = table.space(namespace)
        last = self._last.setdefault((table.name, namespace), [])
        for place, state_key, contents in rows:
            if place == KEEPS_PLACE:
                entries[state_key] = contents
            else:
                last.append((place, group, state_key, contents))

    def put_last(self) -> None:
        """Appends the new keys, and drops namespaces that are empty."""
        for (name, namespace), rows in self._last.items():
            table = self._tables[name]
            entries = table.space(namespace)
            for _, _, state_key, contents in sorted(rows, key=lambda row: row[:2]):
                entries.pop(state_key, None)
                entries[state_key] = contents
            table.leave(namespace)


def _group_of(
    tables: Sequence[StateTable], touched: dict[Any, None], router: KeyRouter
) -> dict[Any, int]:
    noted = (keys for table in tables if table.touched for keys in table.touched.pairs.values())
    keys = list(dict.fromkeys(chain(touched, *noted)))
    return dict(zip(keys, router.key_groups_of([key_of(key) for key in keys]), strict=True))


def _rows(
    entries: MutableMapping[Any, Any], touched: dict[Any, None]
) -> Iterator[tuple[Any, int, Any]]:
    """(state key, place, contents) of the touched keys in a dictionary."""
    place_of = {key: place for place, key in enumerate(newest(entries, touched))}
    smaller, larger = (touched, entries) if len(touched) < len(entries) else (entries, touched)
    for key in smaller:
        if key in larger:
            yield key, place_of.get(key, KEEPS_PLACE), entries[key]


def _drop(frames: Sequence[tuple[int, Frame]], tables: StateTables, router: KeyRouter) -> None:
    """Removes the keys of dropped namespaces, for the key groups that dropped them."""
    dropped: dict[tuple[str, Any], set[int]] = {}
    for group, (_, _, _, states) in frames:
        for name, (_, _, _, spaces) in states.items():
            for namespace, gone, _ in spaces:
                if gone is None:
                    dropped.setdefault((name, namespace), set()).add(group)
    for (name, namespace), groups in dropped.items():
        entries = tables[name].spaces.get(namespace, {})
        keys = list(entries)
        for key, group in zip(keys, router.key_groups_of(list(map(key_of, keys))), strict=True):
            if group in groups:
                del entries[key]
