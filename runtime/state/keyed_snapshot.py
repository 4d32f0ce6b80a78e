"""Keyed state as bytes per key group, and back.

The bytes of a key group are a pickle of

    (1, {name: (kind, has_ttl, [(position, namespace, key, contents), ...])})

with the position of an entry among all entries of its state and subtask, by which a restore puts the
entries of its key groups into their old order. Keys and contents are pickled as what they are: a user's
class must be importable where the state is restored.
"""

from __future__ import annotations

import pickle
from itertools import count
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.state.key_identity import key_of
from opchain.runtime.state.key_router import KeyRouter
from opchain.runtime.state.state_table import StateTable
from opchain.runtime.state.ttl_states import TimeToLive
from opchain.runtime.task.record_pickle import dump_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opchain.runtime.state.java_hash import Hasher
    from opchain.runtime.state.key_groups import KeyGroupRange
    from opchain.runtime.state.key_identity import KeyIdentity

    Row = tuple[int, Any, Any, Any]

FORMAT = 1


def write_tables(
    tables: Iterable[StateTable],
    max_parallelism: int,
    hasher: Hasher | None,
    now: Callable[[], int],
) -> dict[int, bytes]:
    """The snapshot of tables.

    Raises:
        StateError: Something in a state can't be pickled.
    """
    groups: dict[int, dict[str, tuple[str, bool, list[Row]]]] = {}
    router = KeyRouter(max_parallelism, 1, hasher)
    for table in tables:
        rows = _rows(table, now)
        key_groups = router.key_groups_of([row[2] for row in rows])
        for group, row in zip(key_groups, rows, strict=True):
            states = groups.setdefault(group, {})
            states.setdefault(table.name, (table.kind, table.has_ttl, []))[2].append(row)
    return {group: _pickled(states) for group, states in sorted(groups.items())}


def read_tables(
    snapshots: Iterable[Mapping[int, bytes]],
    key_groups: KeyGroupRange,
    identity: KeyIdentity,
    tables: dict[str, StateTable],
    where: str,
) -> None:
    """Adds what snapshots hold of some key groups to tables.

    Raises:
        StateError: A snapshot can't be read, or a state has another kind than before.
    """
    found: dict[str, list[tuple[int, int, Any, Any, Any]]] = {}
    for snapshot in snapshots:
        for group, data in snapshot.items():
            if group not in key_groups:
                continue
            for name, (kind, has_ttl, entries) in _unpickled(data, where).items():
                _require(tables, name, kind, where, has_ttl=has_ttl)
                found.setdefault(name, []).extend(
                    (position, group, namespace, key, contents)
                    for position, namespace, key, contents in entries
                )
    plain, identify = identity.plain, identity.of
    for name, rows in found.items():
        table = tables[name]
        for _, _, namespace, key, contents in sorted(rows, key=lambda row: row[:2]):
            state_key = key if key.__class__ in plain else identify(key)
            table.space(namespace)[state_key] = contents


def _rows(table: StateTable, now: Callable[[], int]) -> list[Row]:
    config = None if table.descriptor is None else table.descriptor.ttl_config
    ttl = None
    if table.has_ttl and config is not None and config.get_cleanup_strategies().in_full_snapshot():
        ttl = TimeToLive(config, now)
    position = count()
    return [
        (next(position), namespace, key_of(state_key), contents if ttl is None else kept)
        for namespace, entries in table.spaces.items()
        for state_key, contents in entries.items()
        if ttl is None or (kept := ttl.live(table.kind, contents)) is not None
    ]


def _require(
    tables: dict[str, StateTable], name: str, kind: str, where: str, *, has_ttl: bool
) -> None:
    table = tables.get(name)
    if table is None:
        tables[name] = StateTable(name, kind, has_ttl=has_ttl, descriptor=None)
    elif (table.kind, table.has_ttl) != (kind, has_ttl):
        raise StateError(
            f"{where}: state '{name}' was a {kind} {'with' if has_ttl else 'without'} a time to live "
            f"when the snapshot was taken, and is a {table.kind} "
            f"{'with' if table.has_ttl else 'without'} one; restore before asking for states"
        )


def _pickled(states: dict[str, tuple[str, bool, list[Row]]]) -> bytes:
    try:
        return dump_records((FORMAT, states))
    except Exception as error:
        name, row = _unpicklable(states)
        raise StateError(
            f"state '{name}' can't be saved: {short_repr(row)} can't be pickled "
            f"({type(error).__name__}: {error}); keep plain values in state"
        ) from error


def _unpicklable(states: dict[str, tuple[str, bool, list[Row]]]) -> tuple[str, Any]:
    for name, (_, _, rows) in states.items():
        for _, *entry in rows:
            for part in entry:
                if not _is_picklable(part):
                    return name, part
    return "?", None


def _is_picklable(part: Any) -> bool:
    try:
        dump_records(part)
    except Exception:  # noqa: BLE001 - whatever a user's object raises
        return False
    return True


def _unpickled(data: bytes, where: str) -> dict[str, tuple[str, bool, list[Row]]]:
    try:
        version, states = pickle.loads(data)
    except Exception as error:
        raise StateError(
            f"{where}: a snapshot of keyed state can't be read: {type(error).__name__}: {error}"
        ) from error
    if version != FORMAT:
        raise StateError(
            f"{where}: a snapshot of keyed state has format {version!r}, and this version of opchain "
            f"reads format {FORMAT}"
        )
    found: dict[str, tuple[str, bool, list[Row]]] = states
    return found
