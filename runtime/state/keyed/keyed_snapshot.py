"""Snapshots of keyed state as bytes per key group: writing and reading them.

The bytes of a key group are *frames*, which are pickles one after the other: at most one whole snapshot, then changes
in order. So changes can be appended to a snapshot without unpickling either. The first item of a frame is its format,
WHOLE or CHANGES. The second item of CHANGES is a number, which orders the frames of different key groups. A whole
snapshot has the number 0.

The frame of a whole snapshot is a pickle of

    (1, {name: (kind, has_ttl, [(position, namespace, key, contents), ...])})

The position is that of an entry among all entries of its state and subtask. A restore uses it to put the entries of all
key groups into their old order. Keys and contents are pickled as they are. A user's class must be importable where the
state is restored. The frames of changes are described in keyed_changes.py.
"""

from __future__ import annotations

import io
import pickle
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.state.keyed.ttl_states import TimeToLive
from opchain.runtime.state.keys.key_identity import KeyIdentity, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opchain.runtime.state.keyed.state_table import StateTable, StateTables
    from opchain.runtime.state.keys.key_groups import KeyGroupRange
    from opchain.runtime.state.keys.key_router import KeyRouter


if TYPE_CHECKING:
    Frame = tuple[Any, ...]

WHOLE = 1
CHANGES = 2


def in_order(
    snapshots: Iterable[Mapping[int, bytes]], key_groups: KeyGroupRange, what: str, where: str
) -> list[tuple[int, list[tuple[int, Frame]]]]:
    """The frames of some key groups: (number, [(key group, frame)]), by number and then by key group.

    Args:
        snapshots: Bytes by key group.
        key_groups: The key groups to read.
        what: The kind of the bytes, for messages.
        where: The operator and its call site, for messages.

    Raises:
        StateError: The bytes can't be read, or are of another format.
    """
    found: dict[int, list[tuple[int, Frame]]] = {}
    for snapshot in snapshots:
        for group, data in snapshot.items():
            if group not in key_groups:
                continue
            for frame in _frames(data, what, where):
                number = 0 if frame[0] == WHOLE else frame[1]
                found.setdefault(number, []).append((group, frame))
    return [(number, sorted(found[number], key=itemgetter(0))) for number in sorted(found)]


def _frames(data: bytes, what: str, where: str) -> Iterator[Frame]:
    if not data:
        raise StateError(f"{where}: {what} can't be read: it is empty")
    stream = io.BytesIO(data)
    while stream.tell() < len(data):
        start = stream.tell()
        reader = NotingUnpickler(stream)
        try:
            frame = reader.load()
        except Exception as error:  # noqa: BLE001 - a user's class may raise anything
            _refuse(data[start:], error, reader.last, what, where)
        version = frame[0] if isinstance(frame, tuple) and frame else frame
        if version not in (WHOLE, CHANGES) or version is frame:
            raise StateError(
                f"{where}: {what} has format {version!r}, but this version of opchain reads formats "
                f"{WHOLE} and {CHANGES}"
            )
        yield frame


class NotingUnpickler(pickle.Unpickler):
    """Remembers the class that it looked up last."""

    last: str | None = None

    def find_class(self, module: str, name: str) -> Any:
        """Imports a class or function."""
        self.last = f"{module}.{name}"
        return super().find_class(module, name)


class _Unreadable:
    """Replaces the objects of a class that can't be read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accepts any arguments, as the class may."""

    def __setstate__(self, state: Any) -> None:
        """Accepts any state, as the class may."""

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> NoReturn:
        raise _FoundError


class _FoundError(Exception):
    """A pickled value contains an unreadable object."""


class _PartialReader(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, unreadable: str) -> None:
        super().__init__(stream)
        self._unreadable = unreadable

    def find_class(self, module: str, name: str) -> Any:
        """Imports a class, but replaces the unreadable class."""
        return (
            _Unreadable
            if f"{module}.{name}" == self._unreadable
            else super().find_class(module, name)
        )


def _refuse(
    data: bytes, error: Exception, last_class: str | None, what: str, where: str
) -> NoReturn:
    problem = f"{type(error).__name__}: {error}"
    if last_class is None:
        raise StateError(f"{where}: {what} can't be read: {problem}") from error
    state = _guarded(lambda: _state_with(data, last_class))
    of_state = "" if state is None else f" of state '{state}'"
    raise StateError(
        f"{where}: {what} can't be read: objects{of_state} are of the class {last_class}, which "
        f"can't be loaded as it was saved ({problem}); keep the class importable under its old "
        f"name and compatible with the saved data, or keep plain values in state"
    ) from error


def _state_with(data: bytes, unreadable: str) -> str | None:
    """The name of the state that holds objects of a class."""
    frame = _PartialReader(io.BytesIO(data), unreadable).load()
    return next((str(name) for name, held in frame[-1].items() if _has_unreadable(held)), None)


def _has_unreadable(contents: Any) -> bool:
    try:
        pickle.dumps(contents)
    except _FoundError:
        return True
    return False


def _guarded(search: Callable[[], str | None]) -> str | None:
    try:
        return search()
    except Exception:  # noqa: BLE001 - the search is for a better message; the error itself is raised anyway
        return None


if TYPE_CHECKING:
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
    """Adds the entries of whole snapshots to tables.

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
    """The time to live by which a snapshot leaves entries out, or None if it contains all entries."""
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
    """Adds the table of a state of a snapshot, if there is none.

    Raises:
        StateError: The state is registered with another kind.
    """
    table = tables.get(name)
    if table is None:
        tables.add(name, kind, has_ttl=has_ttl)
    elif (table.kind, table.has_ttl) != (kind, has_ttl):
        raise StateError(
            f"{where}: state '{name}' was a {kind} {'with' if has_ttl else 'without'} a time to live "
            f"when the snapshot was taken, and is a {table.kind} "
            f"{'with' if table.has_ttl else 'without'} one; restore before you get the state"
        )


def pickled(frame: Frame) -> bytes:
    """A frame as bytes. The last item of the frame is the states by name.

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
    """The name of a state with contents that can't be pickled, and these contents."""
    for name, state in states.items():
        if not _is_picklable(state):
            return name, _innermost(state)
    return "?", None


def _innermost(part: Any) -> Any:
    """The key, namespace or contents in the rows of a state that can't be pickled."""
    while type(part) in (tuple, list):
        rest = part
        part = next((item for item in rest if not _is_picklable(item)), None)
        if part is None:
            return rest
    return part


def _is_picklable(part: Any) -> bool:
    try:
        dump_records(part)
    except Exception:  # noqa: BLE001 - a user's object may raise anything
        return False
    return True
