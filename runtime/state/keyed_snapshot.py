"""Keyed state as bytes per key group, and back.

The frame of a key group (see keyed_frames; keyed_changes has what may follow it) is a pickle of

    (1, {name: (kind, has_ttl, [(position, namespace, key, contents), ...])})

with the position of an entry among all entries of its state and subtask, by which a restore puts the
entries of its key groups into their old order. Keys and contents are pickled as what they are: a user's
class must be importable where the state is restored.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.state.key_identity import key_of
from opchain.runtime.state.keyed_frames import WHOLE
from opchain.runtime.state.ttl_states import TimeToLive
from opchain.runtime.task.record_pickle import dump_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opchain.runtime.state.key_identity import KeyIdentity
    from opchain.runtime.state.key_router import KeyRouter
    from opchain.runtime.state.keyed_frames import Frame
    from opchain.runtime.state.state_table import StateTable, StateTables

    Row = tuple[int, Any, Any, Any]


def write_tables(
    tables: Iterable[StateTable], router: KeyRouter, now: Callable[[], int]
) -> dict[int, bytes]:
    """The snapshot of tables.

    Raises:
        StateError: Something in a state can't be pickled.
    """
    groups: dict[int, dict[str, tuple[str, bool, list[Row]]]] = {}
    for table in tables:
        rows = _rows(table, now)
        key_groups = router.key_groups_of([row[2] for row in rows])
        for group, row in zip(key_groups, rows, strict=True):
            states = groups.setdefault(group, {})
            states.setdefault(table.name, (table.kind, table.has_ttl, []))[2].append(row)
    return {group: pickled((WHOLE, states)) for group, states in sorted(groups.items())}


def read_tables(
    frames: Sequence[tuple[int, Frame]],
    tables: StateTables,
    identity: KeyIdentity,
    where: str,
) -> None:
    """Adds what whole snapshots hold to tables.

    Raises:
        StateError: A state has another kind than before.
    """
    found: dict[str, list[tuple[int, int, Any, Any, Any]]] = {}
    for group, (_, states) in frames:
        for name, (kind, has_ttl, entries) in states.items():
            require(tables, name, kind, where, has_ttl=has_ttl)
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


def ttl_of_snapshot(table: StateTable, now: Callable[[], int]) -> TimeToLive | None:
    """By which entries are left out of a snapshot; None where all are in it."""
    config = None if table.descriptor is None else table.descriptor.ttl_config
    if table.has_ttl and config is not None and config.get_cleanup_strategies().in_full_snapshot():
        return TimeToLive(config, now)
    return None


def _rows(table: StateTable, now: Callable[[], int]) -> list[Row]:
    ttl = ttl_of_snapshot(table, now)
    position = count()
    return [
        (next(position), namespace, key_of(state_key), contents if ttl is None else kept)
        for namespace, entries in table.spaces.items()
        for state_key, contents in entries.items()
        if ttl is None or (kept := ttl.live(table.kind, contents)) is not None
    ]


def require(tables: StateTables, name: str, kind: str, where: str, *, has_ttl: bool) -> None:
    """Has a table for a state of a snapshot.

    Raises:
        StateError: The state is known as one of another kind.
    """
    table = tables.get(name)
    if table is None:
        tables.add(name, kind, has_ttl=has_ttl)
    elif (table.kind, table.has_ttl) != (kind, has_ttl):
        raise StateError(
            f"{where}: state '{name}' was a {kind} {'with' if has_ttl else 'without'} a time to live "
            f"when the snapshot was taken, and is a {table.kind} "
            f"{'with' if table.has_ttl else 'without'} one; restore before asking for states"
        )


def pickled(frame: Frame) -> bytes:
    """A frame, whose last item are the states by name, as bytes.

    Raises:
        StateError: Something in a state can't be pickled.
    """
    try:
        return dump_records(frame)
    except Exception as error:
        name, part = _unpicklable(frame[-1])
        raise StateError(
            f"state '{name}' can't be saved: {short_repr(part)} can't be pickled "
            f"({type(error).__name__}: {error}); keep plain values in state"
        ) from error


def _unpicklable(states: dict[str, tuple[Any, ...]]) -> tuple[str, Any]:
    """The name of a state, and what it holds that can't be pickled."""
    for name, state in states.items():
        if not _is_picklable(state):
            return name, _innermost(state)
    return "?", None


def _innermost(part: Any) -> Any:
    """What can't be pickled in the rows of a state: a key, a namespace, or contents."""
    while type(part) in (tuple, list):
        rest = part
        part = next((item for item in rest if not _is_picklable(item)), None)
        if part is None:
            return rest
    return part


def _is_picklable(part: Any) -> bool:
    try:
        dump_records(part)
    except Exception:  # noqa: BLE001 - whatever a user's object raises
        return False
    return True
