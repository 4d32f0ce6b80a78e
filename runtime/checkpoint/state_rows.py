"""Reads the state in a checkpoint as rows, and writes rows as the state of a savepoint.

A row is one entry: the contents of a key in a state (and a window), one timer, one element of a list of operator state,
or one entry of a broadcast state. Rows are read one key group after the other, so only one is in memory at a time.

A changed row goes back to the key group of its key. A new key is placed by the hash of the key type, as by `key_by`. If
no type is given, it is inferred from the existing keys: it is the first type that puts each of them into its key group.

Flink: `SavepointReader`, `SavepointWriter` of the State Processor API.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    OperatorMetadata,
    StateDescription,
    TaskMetadata,
    encode,
)
from opchain.runtime.checkpoint.restore_plan import TIMERS
from opchain.runtime.checkpoint.savepoint import METADATA, Located, copied_files, empty_target
from opchain.runtime.checkpoint.state_files import read_task_state, write_task_state
from opchain.runtime.columnar.decode import records_of
from opchain.runtime.columnar.encode import RecordEncoder
from opchain.runtime.columnar.spark_types import pyarrow
from opchain.runtime.columnar.type_mapping import spark_type_of
from opchain.runtime.errors import CheckpointError, StateError, short_repr
from opchain.runtime.functions.window import CountWindow, GlobalWindow, TimeWindow
from opchain.runtime.mailbox.timer_service import wall_clock_ms
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keyed.keyed_backend import VOID
from opchain.runtime.state.keyed.keyed_snapshot import WHOLE, pickled
from opchain.runtime.state.keyed.state_table import RAW, StateTables
from opchain.runtime.state.keyed.ttl_states import stamped, unstamped
from opchain.runtime.state.keys.key_groups import KeyGroupRange, key_group
from opchain.runtime.state.keys.key_hashers import hasher_of_type
from opchain.runtime.state.keys.key_identity import key_of, state_key
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.state.keys.pyflink_keys import hash_pickled, pyflink_hasher
from opchain.runtime.state.operator_snapshot import (
    ListMode,
    OperatorSnapshot,
    OperatorStateSnapshot,
)
from opchain.runtime.state.timers.timer_services import TimerServices
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.types.row import Row
from opchain.runtime.types.time_types import ZONED_TIMESTAMP
from opchain.runtime.types.types import Types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.state.keys.java_hash import Hasher
    from opchain.runtime.state.timers.keyed_timers import KeyedTimers
    from opchain.runtime.types.type_information import TypeInformation

_KINDS = {
    "value": "ValueStateDescriptor",
    "list": "ListStateDescriptor",
    "map": "MapStateDescriptor",
    "reducing": "ReducingStateDescriptor",
    "aggregating": "AggregatingStateDescriptor",
    RAW: RAW,
}
_KIND_OF = {descriptor: kind for kind, descriptor in _KINDS.items()}
_TIMER_KINDS = ("event-time timer", "processing-time timer")
_LIST_KINDS = {"operator list": ListMode.SPLIT, "operator union list": ListMode.UNION}
_BROADCAST = "broadcast"
_ALL_KINDS = (*_KINDS, *_TIMER_KINDS, *_LIST_KINDS, _BROADCAST)

_SAMPLE = 1000
"""The number of keys from which a key type is inferred, and of rows from which the type of a column is inferred."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """One entry of the state of an operator.

    Attributes:
        operator: The operator's uid; its name if it has no uid.
        operator_id: Its id.
        state: The name of the state, or of the timer service.
        kind: value, list, map, reducing, aggregating, table (an operator's own), event-time timer,
            processing-time timer, operator list, operator union list, or broadcast.
        key: The key; None for operator state. The key of the entry for broadcast state.
        window_start: The start of a time window in milliseconds since 1970, the number of a count window, or None.
        window_end: The end of a time window; the largest long for a count window and a global window.
        value: The contents: a value, a list, a dict, an accumulator; for a timer its time in milliseconds.
        key_group: The key group; None for operator state.
        subtask: The subtask that wrote the entry.
        namespace: A window of another class, or the namespace that an operator chose, such as an interval join.
    """

    operator: str
    operator_id: str
    state: str
    kind: str
    key: Any = None
    window_start: int | None = None
    window_end: int | None = None
    value: Any = None
    key_group: int | None = None
    subtask: int = 0
    namespace: Any = None


COLUMNS = tuple(StateRow.__dataclass_fields__)


class Chosen(NamedTuple):
    """Which rows are read; None for all.

    `key` is a tuple of one key, as None is a key, too. `key_groups` leaves out operator state.
    """

    operator: str | None = None
    state: str | None = None
    key: tuple[Any] | None = None
    key_groups: KeyGroupRange | None = None

    def takes(self, row: StateRow) -> bool:
        """Whether a row of the operator is one of them."""
        if self.state not in (None, row.state):
            return False
        if self.key_groups is not None and row.key_group is None:
            return False
        return self.key is None or state_key(row.key) == state_key(self.key[0])


def read_rows(checkpoint: Located, chosen: Chosen) -> Iterator[StateRow]:
    """The rows of a checkpoint, by operator, subtask and key group.

    Raises:
        CheckpointError: There is no such operator or state.
        StateError: An object in the state can't be unpickled.
        CorruptCheckpointError: A file is missing or altered.
    """
    for operator in chosen_operators(checkpoint.metadata, chosen.operator, chosen.state):
        groups = chosen.key_groups or KeyGroupRange(0, operator.max_parallelism - 1)
        for subtask, task in enumerate(checkpoint.metadata.tasks_of(operator)):
            found = read_task_state(
                checkpoint.storage, [task], [operator.operator_id], groups, 1, 0
            )
            snapshot = found.get(operator.operator_id, OperatorSnapshot())
            for row in _rows_of(operator, snapshot):
                if chosen.takes(row):
                    yield replace(row, subtask=subtask)


def chosen_operators(
    metadata: CheckpointMetadata, operator: str | None, state: str | None = None
) -> list[OperatorMetadata]:
    """The operators with a uid, name or id, or all operators, that have a state.

    Raises:
        CheckpointError: There is none.
    """
    found = [
        each
        for each in metadata.operators
        if operator is None or operator in (each.uid, each.name, each.operator_id)
    ]
    if not found:
        known = ", ".join(f"'{each.uid or each.name}'" for each in metadata.operators) or "none"
        raise CheckpointError(
            f"checkpoint {metadata.checkpoint_id} has no state of an operator '{operator}'; it has state of: "
            f"{known} (a uid, a name, or an id)"
        )
    if state is None:
        return found
    having = [each for each in found if any(state == known.name for known in each.states)]
    if not having:
        known = ", ".join(f"'{known.name}'" for each in found for known in each.states) or "none"
        raise CheckpointError(
            f"checkpoint {metadata.checkpoint_id} has no state '{state}'; it has: {known}"
        )
    return having


class _OneGroup(KeyRouter):
    """Places all keys in the key group from which they were read."""

    def __init__(self, group: int) -> None:
        self._group = group

    def key_groups_of(self, keys: list[Any]) -> Sequence[int]:
        """The key group."""
        return [self._group] * len(keys)


class _GroupState(HashMapKeyedStateBackend):
    """The keyed state of one key group, for any type of keys."""

    def tables(self, group: int, data: bytes) -> StateTables:
        """The tables of a snapshot and the changes that follow it."""
        self._made_router = _OneGroup(group)
        self.restore([{group: data}])
        return self._tables


class _GroupTimers(TimerServices):
    """The timers of one key group."""

    def queues(self, group: int, data: bytes) -> dict[str, tuple[KeyedTimers, KeyedTimers]]:
        """The timers of each service, by clock."""
        self._made_router = _OneGroup(group)
        self.restore([{group: data}])
        return self._queues


def _tables_of(operator: OperatorMetadata, group: int, data: bytes) -> StateTables:
    only = KeyGroupRange(group, group)
    backend = _GroupState(operator.max_parallelism, only, where=f"'{operator.name}'")
    return backend.tables(group, data)


def _timers_of(
    operator: OperatorMetadata, group: int, data: bytes
) -> dict[str, tuple[KeyedTimers, KeyedTimers]]:
    where = f"'{operator.name}'"
    backend = HashMapKeyedStateBackend(
        operator.max_parallelism, KeyGroupRange(group, group), where=where
    )
    services = _GroupTimers(backend, cast("Any", None), where=where)  # no timer fires here
    return services.queues(group, data)


def _rows_of(operator: OperatorMetadata, snapshot: OperatorSnapshot) -> Iterator[StateRow]:
    blank = StateRow(operator.uid or operator.name, operator.operator_id, "", "")
    for group, data in snapshot.keyed.items():
        for table in _tables_of(operator, group, data).values():
            of_table = replace(
                blank, state=table.name, kind=_KIND_OF.get(table.kind, table.kind), key_group=group
            )
            for namespace, entries in table.spaces.items():
                of_namespace = replace(of_table, **_columns_of(namespace))
                for held_by, contents in entries.items():
                    value = unstamped(table.kind, contents) if table.has_ttl else contents
                    yield replace(of_namespace, key=key_of(held_by), value=value)
    for group, data in snapshot.timers.items():
        for name, clocks in _timers_of(operator, group, data).items():
            of_service = replace(blank, state=name, key_group=group)
            yield from _timer_rows(of_service, clocks)
    yield from _operator_rows(blank, snapshot.operator)


def _timer_rows(blank: StateRow, clocks: tuple[KeyedTimers, KeyedTimers]) -> Iterator[StateRow]:
    for kind, timers in zip(_TIMER_KINDS, clocks, strict=True):
        for time, namespace, held_by in timers:
            of_namespace = _columns_of(namespace)
            yield replace(blank, kind=kind, key=key_of(held_by), value=time, **of_namespace)


def _operator_rows(blank: StateRow, found: OperatorStateSnapshot) -> Iterator[StateRow]:
    for name, (mode, elements) in found.lists.items():
        kind = next(kind for kind, of_kind in _LIST_KINDS.items() if of_kind is mode)
        for element in elements:
            yield replace(blank, state=name, kind=kind, value=pickle.loads(element))
    for name, pickled_map in found.maps.items():
        for key, value in pickle.loads(pickled_map).items():
            yield replace(blank, state=name, kind=_BROADCAST, key=key, value=value)


def _columns_of(namespace: Any) -> dict[str, Any]:
    if isinstance(namespace, TimeWindow):
        return {"window_start": namespace.start, "window_end": namespace.end}
    if isinstance(namespace, CountWindow):
        return {"window_start": namespace.id, "window_end": namespace.max_timestamp()}
    if isinstance(namespace, GlobalWindow):
        return {"window_end": namespace.max_timestamp()}
    return {} if namespace is VOID else {"namespace": namespace}


def _namespace(row: StateRow) -> Any:
    if row.window_end is None:
        return VOID if row.namespace is None else row.namespace
    if row.window_start is None:
        return GlobalWindow.get()
    if row.window_end >= MAX_LONG_VALUE:  # pandas may have rounded it up
        return CountWindow(row.window_start)
    return TimeWindow(row.window_start, row.window_end)


# Columns


def type_of(values: Iterable[Any], what: str) -> TypeInformation[Any]:
    """The type of values, inferred from the values.

    Raises:
        StateError: They have several types, or a type that has no columns.
    """
    found: TypeInformation[Any] | None = None
    for value in values:
        kind = None if value is None else _type_of(value, what)
        if kind is None or kind == found:
            continue
        if found is not None:
            raise StateError(
                f"{what} are of the types {found!r} and {kind!r}, which do not fit into one column: read one "
                "operator and state at a time, or read Python objects (pandas, JSON)"
            )
        found = kind
    return found or Types.STRING()


_PLAIN_TYPES: dict[str, Callable[[], TypeInformation[Any]]] = {
    "bool": Types.BOOLEAN,
    "int": Types.LONG,
    "float": Types.DOUBLE,
    "str": Types.STRING,
    "bytes": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "date": Types.SQL_DATE,
    "time": Types.SQL_TIME,
    "Decimal": Types.BIG_DEC,
}


def _type_of(value: Any, what: str) -> TypeInformation[Any]:
    kind = type(value)
    plain: Callable[[], TypeInformation[Any]] | None = _PLAIN_TYPES.get(kind.__name__)
    if plain is not None:
        return plain()
    if isinstance(value, datetime):
        return Types.SQL_TIMESTAMP() if value.tzinfo is None else ZONED_TIMESTAMP
    if isinstance(value, tuple):
        return Types.TUPLE([type_of([field], what) for field in value])
    if isinstance(value, list):
        return Types.LIST(type_of(value, what))
    if isinstance(value, dict):
        return Types.MAP(type_of(value, what), type_of(value.values(), what))
    if isinstance(value, Row):
        fields = [type_of([field], what) for field in value]
        return Types.ROW_NAMED(value._fields, fields) if value._fields else Types.ROW(fields)
    raise StateError(
        f"{what} are of the class {kind.__module__}.{kind.__qualname__}, which has no columns: read Python "
        "objects (pandas, JSON), or keep plain values in state"
    )


def row_type(rows: Iterable[StateRow]) -> TypeInformation[Any]:
    """The types of the columns. For `key`, `value` and `namespace` they are inferred from the first rows."""
    sample = list(islice(rows, _SAMPLE))
    text, number = Types.STRING(), Types.LONG()
    types: dict[str, TypeInformation[Any]] = {
        "key": type_of((row.key for row in sample), "the keys"),
        "value": type_of((row.value for row in sample), "the values"),
        "namespace": type_of((row.namespace for row in sample), "the namespaces"),
        **dict.fromkeys(("window_start", "window_end", "key_group", "subtask"), number),
    }
    return Types.ROW_NAMED(list(COLUMNS), [types.get(name, text) for name in COLUMNS])


def record_batch(rows: Sequence[StateRow], of_type: TypeInformation[Any]) -> Any:
    """The rows as an Arrow record batch.

    Raises:
        RecordSchemaError: A row is of another type.
    """
    encoder = RecordEncoder(spark_type_of(of_type), "the state")
    return encoder.batch([tuple(getattr(row, name) for name in COLUMNS) for row in rows])


def as_json(row: StateRow) -> str:
    """The row as a JSON object on one line. Values that JSON does not support are written as their repr."""
    fields = asdict(replace(row, key=None, value=None, namespace=None))
    fields.update(key=_plain(row.key), value=_plain(row.value), namespace=_plain(row.namespace))
    return json.dumps(fields, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Row) and value._fields:
        return {name: _plain(field) for name, field in zip(value._fields, value, strict=True)}
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: _plain(item) for key, item in value.items()}
        return [[_plain(key), _plain(item)] for key, item in value.items()]
    if isinstance(value, (tuple, list, Row)):
        return [_plain(item) for item in value]
    return repr(value)


def rows_from(data: Any, defaults: Mapping[str, Any]) -> list[StateRow]:
    """The rows in a DataFrame of pandas or Spark, an Arrow table, or an iterable of rows or mappings.

    Args:
        data: The rows.
        defaults: Columns that the data does not have.

    Raises:
        StateError: A column is missing or unknown, or a kind is.
    """
    found = []
    for record in _records(data):
        columns = {**defaults, **record}
        unknown = columns.keys() - set(COLUMNS)
        missing = {"operator", "state", "value"} - columns.keys()
        if unknown or missing:
            raise StateError(
                f"the rows have the columns {', '.join(map(repr, record))}: "
                + (f"{sorted(unknown)} are not columns of state" if unknown else "")
                + (f"{sorted(missing)} are missing, as arguments or columns" if missing else "")
                + f"; the columns are {', '.join(COLUMNS)}"
            )
        columns.setdefault("operator_id", "")
        columns.setdefault("kind", "value")
        for name in ("window_start", "window_end", "key_group", "subtask"):
            number = columns.get(name)
            columns[name] = None if number is None or number != number else int(number)  # noqa: PLR0124 - NaN
        columns["subtask"] = columns["subtask"] or 0
        if columns["kind"] not in _ALL_KINDS:
            raise StateError(
                f"the kind {columns['kind']!r} of state '{columns['state']}' is unknown; kinds are: "
                f"{', '.join(_ALL_KINDS)}"
            )
        found.append(StateRow(**columns))
    return found


def _records(data: Any) -> Iterator[Mapping[str, Any]]:
    if hasattr(data, "toArrow"):  # Spark
        data = data.toArrow()
    if hasattr(data, "to_batches"):  # Arrow
        for batch in data.to_batches():
            for record in records_of(batch):
                yield {name: _as_tuples(record[name]) for name in record._fields or ()}
    elif hasattr(data, "iterrows"):  # pandas
        yield from data.to_dict("records")
    else:
        for row in data:
            yield (
                {name: getattr(row, name) for name in COLUMNS} if isinstance(row, StateRow) else row
            )


def _as_tuples(value: Any) -> Any:
    """A value as it is in state, where a struct of f0, f1, ... is a tuple."""
    if isinstance(value, list):
        return [_as_tuples(item) for item in value]
    if isinstance(value, dict):
        return {_as_tuples(key): _as_tuples(item) for key, item in value.items()}
    if isinstance(value, Row):
        fields = [_as_tuples(field) for field in value]
        names = value._fields or []
        if names == [f"f{position}" for position in range(len(fields))]:
            return tuple(fields)
        return Row(**dict(zip(names, fields, strict=True)))
    return value


def arrow_table(rows: Iterable[StateRow]) -> Any:
    """All rows as an Arrow table."""
    found = list(rows)
    return pyarrow().Table.from_batches([record_batch(found, row_type(found))])


# Writing


@dataclass(frozen=True, slots=True)
class Replaced:
    """The new rows of an operator, by state and kind. They replace all of its rows of the same state and kind."""

    operator: OperatorMetadata
    rows: Mapping[tuple[str, str], Sequence[StateRow]]
    hasher: Hasher


def write_rows(
    storage: CheckpointStorage,
    rows: Mapping[str, Mapping[tuple[str, str], Sequence[StateRow]]],
    *,
    base: Located | None,
    new_operators: Mapping[str, OperatorMetadata],
    key_type: TypeInformation[Any] | None = None,
) -> CheckpointMetadata:
    """Writes a savepoint: the checkpoint `base` with some states replaced, or these states alone.

    Args:
        storage: The empty directory of the savepoint.
        rows: The rows by operator id, and by state and kind.
        base: The checkpoint to change, or None.
        new_operators: The operators that are not in the base, by id.
        key_type: The type of the keys, as in `key_by`.

    Raises:
        CheckpointError: The target is not empty.
        StateError: A key does not fit its key group or type, or a value can't be pickled.
    """
    empty_target(storage)
    metadata = (
        CheckpointMetadata(1, wall_clock_ms(), "state written by opchain.state.write", "bootstrap")
        if base is None
        else copied_files(base, storage)
    )
    known = {operator.operator_id: operator for operator in metadata.operators}
    for operator_id, of_states in rows.items():
        operator = known.get(operator_id)
        if operator is None:
            added = new_operators[operator_id]
            first = 1 + max((task.task for task in metadata.tasks), default=-1)
            operator = replace(added, first_task=first)
            state = write_task_state(storage, metadata.checkpoint_id, first, "state", {})
            metadata = replace(
                metadata,
                operators=(*metadata.operators, operator),
                # No vertex has this id, so no task restores watermarks and channels from it.
                tasks=(*metadata.tasks, TaskMetadata(first, f"state of {operator_id}", 0, state)),
            )
        hasher = _hasher(operator, key_type, _sampled_keys(storage, metadata, operator))
        metadata = _replaced(storage, metadata, Replaced(operator, of_states, hasher))
    metadata = replace(metadata, kind="savepoint")
    storage.publish(METADATA, encode(metadata, storage.key))
    return metadata


def _sampled_keys(
    storage: CheckpointStorage, metadata: CheckpointMetadata, operator: OperatorMetadata
) -> list[tuple[Any, int]]:
    found = read_rows(Located(storage, metadata), Chosen(operator.operator_id))
    keyed = ((row.key, row.key_group) for row in found if row.key_group is not None)
    return list(islice(keyed, _SAMPLE))


def _hasher(
    operator: OperatorMetadata,
    key_type: TypeInformation[Any] | None,
    keys: Sequence[tuple[Any, int]],
) -> Hasher:
    """The hasher that maps the stored keys to their key groups: that of `key_type`, or the first that fits."""
    where = f"'{operator.uid or operator.name}'"
    if key_type is not None:
        hasher = pyflink_hasher(key_type, hasher_of_type(key_type))
        if _places(hasher, keys, operator.max_parallelism):
            return hasher
        raise StateError(
            f"the keys of {where} are in other key groups than keys of the type {key_type!r}: pass the "
            "key_type that the program gives to key_by(), or no key_type if the program gives none"
        )
    candidates: list[Hasher] = [hash_pickled]
    for make in (Types.STRING, Types.LONG, Types.INT, Types.DOUBLE, Types.BOOLEAN):
        of_type = make()
        candidates.append(pyflink_hasher(of_type, hasher_of_type(of_type)))
    for hasher in candidates:
        if _places(hasher, keys, operator.max_parallelism):
            return hasher
    raise StateError(
        f"the key type of {where} is not known from its keys: pass key_type=, as in key_by(..., key_type=...)"
    )


def _places(hasher: Hasher, keys: Sequence[tuple[Any, int]], max_parallelism: int) -> bool:
    try:
        return all(key_group(key, max_parallelism, hasher) == group for key, group in keys)
    except (TypeError, ValueError, StateError):
        return False


def _replaced(
    storage: CheckpointStorage, metadata: CheckpointMetadata, replaced: Replaced
) -> CheckpointMetadata:
    """The checkpoint with new files for the tasks of an operator."""
    operator = replaced.operator
    first, size = operator.first_task, operator.parallelism
    placed = _placed(replaced)
    tasks = []
    everything = KeyGroupRange(0, max(each.max_parallelism for each in metadata.operators) - 1)
    for task in metadata.tasks:
        if not first <= task.task < first + size:
            tasks.append(task)
            continue
        ids = dict.fromkeys((*task.state.operators, operator.operator_id))
        snapshots = read_task_state(storage, [task.state], list(ids), everything, 1, 0)
        before = snapshots.get(operator.operator_id, OperatorSnapshot())
        mine = placed[task.task - first]
        snapshots[operator.operator_id] = _with_rows(replaced, before, mine)
        state = write_task_state(storage, metadata.checkpoint_id, task.task, "state", snapshots)
        for file in task.state.files:
            storage.delete(file.name)
        tasks.append(replace(task, state=state))
    described = {(state.name, state.kind): state for state in operator.states}
    for name, kind in replaced.rows:
        stored = TIMERS if kind in _TIMER_KINDS else _described(kind)
        described.setdefault((name, stored), StateDescription(name, stored))
    changed = replace(operator, states=tuple(described.values()))
    operators = tuple(
        changed if each.operator_id == operator.operator_id else each for each in metadata.operators
    )
    return replace(metadata, operators=operators, tasks=tuple(tasks))


def _placed(replaced: Replaced) -> dict[int, list[StateRow]]:
    """The rows of each subtask. Rows with a key get its key group."""
    size, groups = replaced.operator.parallelism, replaced.operator.max_parallelism
    placed: dict[int, list[StateRow]] = {subtask: [] for subtask in range(size)}
    for of_state in replaced.rows.values():
        for row in of_state:
            if row.kind == _BROADCAST:  # the same in all subtasks
                for rows in placed.values() if row.subtask == 0 else ():
                    rows.append(row)
                continue
            if row.kind not in _KINDS and row.kind not in _TIMER_KINDS:
                placed[row.subtask % size].append(row)
                continue
            group = key_group(row.key, groups, replaced.hasher)
            if row.key_group not in (None, group):
                raise StateError(
                    f"the key {short_repr(row.key)} of '{row.operator}' has key group {row.key_group} in its row, but "
                    f"belongs to {group}: leave key_group empty for a changed key"
                )
            placed[group * size // groups].append(replace(row, key_group=group))
    return placed


def _described(kind: str) -> str:
    return _KINDS.get(kind) or kind.removeprefix("operator ")


def _with_rows(
    replaced: Replaced, before: OperatorSnapshot, rows: Sequence[StateRow]
) -> OperatorSnapshot:
    """The state of a subtask, in which its new rows replace the old rows of the same states."""
    keyed, timers = {}, {}
    of_group: dict[int, list[StateRow]] = {}
    for row in rows:
        if row.key_group is not None:
            of_group.setdefault(row.key_group, []).append(row)
    for group in sorted({*before.keyed, *before.timers, *of_group}):
        of_rows = of_group.get(group, [])
        tables = _group_tables(replaced, group, before.keyed.get(group), of_rows)
        services = _group_services(replaced, group, before.timers.get(group), of_rows)
        if tables:
            keyed[group] = pickled((WHOLE, tables))
        if services:
            timers[group] = dump_records((WHOLE, services))
    lists, maps = dict(before.operator.lists), dict(before.operator.maps)
    for name, kind in replaced.rows:
        mine = [row for row in rows if (row.state, row.kind) == (name, kind)]
        if kind in _LIST_KINDS:
            lists[name] = (_LIST_KINDS[kind], [dump_records(row.value) for row in mine])
        elif kind == _BROADCAST:
            maps[name] = dump_records({row.key: row.value for row in mine})
    return OperatorSnapshot(keyed, timers, OperatorStateSnapshot(lists, maps))


def _group_tables(
    replaced: Replaced, group: int, data: bytes | None, rows: Sequence[StateRow]
) -> dict[str, tuple[str, bool, list[Any]]]:
    old = {} if data is None else _tables_of(replaced.operator, group, data)
    found: dict[str, tuple[str, bool, list[Any]]] = {}
    for name, table in old.items():
        if (name, _KIND_OF.get(table.kind, table.kind)) in replaced.rows:
            continue
        entries = [
            (namespace, key_of(key), contents)
            for namespace, space in table.spaces.items()
            for key, contents in space.items()
        ]
        found[name] = (table.kind, table.has_ttl, entries)
    for row in rows:
        if row.kind not in _KINDS:
            continue
        entry = (_namespace(row), row.key, row.value)
        before = old.get(row.state)
        if before is not None and before.has_ttl:
            entry = (*entry[:2], _stamped(before.spaces.get(entry[0], {}), row))
        has_ttl = before is not None and before.has_ttl
        found.setdefault(row.state, (_KINDS[row.kind], has_ttl, []))[2].append(entry)
    return {
        name: (kind, ttl, [(position, *entry) for position, entry in enumerate(entries)])
        for name, (kind, ttl, entries) in found.items()
    }


def _stamped(entries: Mapping[Any, Any], row: StateRow) -> Any:
    """Contents with the time of their last access: the old one if they have not changed."""
    kind = _KINDS[row.kind]
    before = entries.get(state_key(row.key))
    if before is not None and unstamped(kind, before) == row.value:
        return before
    return stamped(kind, row.value, wall_clock_ms())


def _group_services(
    replaced: Replaced, group: int, data: bytes | None, rows: Sequence[StateRow]
) -> dict[str, tuple[list[Any], list[Any]]]:
    old = {} if data is None else _timers_of(replaced.operator, group, data)
    found: dict[str, tuple[list[Any], list[Any]]] = {}
    for name, clocks in old.items():
        for clock, timers in enumerate(clocks):
            if (name, _TIMER_KINDS[clock]) not in replaced.rows:
                of_clock = found.setdefault(name, ([], []))[clock]
                of_clock += [(time, namespace, key_of(key)) for time, namespace, key in timers]
    for row in rows:
        if row.kind in _TIMER_KINDS:
            of_clock = found.setdefault(row.state, ([], []))[_TIMER_KINDS.index(row.kind)]
            of_clock.append((int(row.value), _namespace(row), row.key))
    return {
        name: cast("Any", tuple([(n, *row) for n, row in enumerate(clock)] for clock in clocks))
        for name, clocks in found.items()
    }
