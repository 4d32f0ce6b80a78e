"""What a task's state holds, entry by entry: to be compared, whatever the order and the files it is in.

Values are compared as canonical bytes, which depend on nothing but the value. Pickles don't serve.
They say which objects are one and the same, and that differs between a task that has lived for epochs and a restored
task; and the order of sets depends on the process. Here each value is written out where it stands, sets are sorted, and objects are what `__reduce_ex__` says, as for pickle.
"""

from __future__ import annotations

import copyreg
import pickle
import struct
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.state_files import read_operator_state
from opchain.runtime.epochs.epoch_task import EpochTask
from opchain.runtime.state.keys.key_groups import key_group_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.runtime.checkpoint.state_files import TaskState
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot
    from opchain.runtime.task.stream_task import TaskEnvironment

_PROTOCOL = 4


def canonical(value: Any) -> bytes:
    """The bytes of a value; equal for equal values of the same types, in every process.

    >>> canonical({"b", "a"}) == canonical({"a", "b"}), canonical(1) == canonical(True)
    (True, False)
    """
    parts: list[bytes] = []
    _Writer(parts.append).put(value)
    return b"".join(parts)


class _Writer:
    """Writes values one behind the other; `path` are the containers around the one that is written."""

    def __init__(self, write: Callable[[bytes], None], path: tuple[int, ...] = ()) -> None:
        self._write = write
        self._path = path

    def put(self, value: Any) -> None:
        """Writes a value: a letter for its kind, and what it takes to read it apart from the next."""
        plain = _PLAIN.get(value.__class__)
        if plain is not None:
            self._write(plain(value))
        elif id(value) in self._path:
            # A value that holds itself: how far up it stands says which.
            self._write(b"^%d;" % (len(self._path) - self._path.index(id(value))))
        else:
            _Writer(self._write, (*self._path, id(value))).put_parts(value)

    def put_parts(self, value: Any) -> None:
        """Writes a value that may hold others; it is the last in the path."""
        kind = value.__class__
        if kind is tuple or kind is list:
            self._put_all(b"(" if kind is tuple else b"[", value)
        elif kind is dict:
            self._put_all(b"{", (part for item in value.items() for part in item))
        elif kind is set or kind is frozenset:
            found = sorted(map(self._bytes_of, value))
            self._write(b"<%s%d;%s" % (kind.__name__.encode(), len(found), b"".join(found)))
        elif isinstance(value, (type, FunctionType, BuiltinFunctionType)):
            self._write(_text(f"{value.__module__}.{value.__qualname__}", b"g"))
        else:
            self._put_reduced(value)

    def _put_reduced(self, value: Any) -> None:
        reducer = copyreg.dispatch_table.get(value.__class__)
        reduced = reducer(value) if reducer is not None else value.__reduce_ex__(_PROTOCOL)
        if isinstance(reduced, str):
            self._write(_text(reduced, b"g"))
            return
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        self._write(b"o")
        for part in (make, arguments, state):
            self.put(part)
        self._put_all(b"[", items or ())
        self._put_all(b"[", pairs or ())

    def _put_all(self, kind: bytes, values: Iterable[Any]) -> None:
        count = 0
        self._write(kind)
        for count, value in enumerate(values, 1):  # noqa: B007 - the count goes behind
            self.put(value)
        self._write(b"%d;" % count)

    def _bytes_of(self, value: Any) -> bytes:
        parts: list[bytes] = []
        _Writer(parts.append, self._path).put(value)
        return b"".join(parts)


def _text(value: str, kind: bytes = b"s") -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"%s%d;%s" % (kind, len(data), data)


_PLAIN: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"N",
    bool: lambda value: b"T" if value else b"F",
    int: lambda value: b"i%d;" % value,
    float: lambda value: b"f" + struct.pack(">d", value),
    str: _text,
    bytes: lambda value: b"b%d;%s" % (len(value), value),
}


NO_KEY: Any = object()
"""Stands for the key of state that has none."""

_CLOCKS = ("event time", "processing time")


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One value of state, or one timer.

    Attributes:
        operator: The name of its operator.
        operator_id: Its id.
        name: What it is: a state by its name, a timer by its clock and time.
        key: Whose it is; NO_KEY where it has none.
        namespace: The window, where it is state of one.
        value: What it holds.
    """

    operator: str
    operator_id: str
    name: str
    key: Any
    namespace: Any
    value: Any

    @property
    def place(self) -> tuple[str, str, bytes]:
        """What tells it from all others of its task."""
        whose = b"" if self.key is NO_KEY else canonical((self.key, self.namespace))
        return (self.operator_id, self.name, whose)


def task_contents(
    job: JobProgram,
    task: int,
    state: TaskState,
    storage: CheckpointStorage,
    environment: TaskEnvironment,
) -> dict[tuple[str, str, bytes], StateEntry]:
    """The entries of a task's state, by their places.

    Args:
        job: The task's job, unpickled for this call: state is read by operators of its own.
        task: The task's number.
        state: Where its state is.
        storage: Where the files are.
        environment: What surrounds tasks here.
    """
    reader = EpochTask(job, task, environment)
    vertex = reader.info.vertex
    groups = key_group_range(vertex.max_parallelism, vertex.parallelism, reader.info.subtask)
    found: dict[tuple[str, str, bytes], StateEntry] = {}
    try:
        for operator in reader.chain.operators:
            program, context = operator.program, operator.context
            snapshot = read_operator_state(storage, [state], program.operator_id, groups, 1, 0)
            if snapshot is None:
                continue
            entries = list(_operator_entries(snapshot))
            if context.keyed_state is not None:
                context.keyed_state.restore([snapshot.keyed])
                context.timers.restore([snapshot.timers])
                entries += _keyed_entries(context.keyed_state.snapshot())
                entries += _timer_entries(context.timers.snapshot())
            for name, key, namespace, value in entries:
                entry = StateEntry(program.name, program.operator_id, name, key, namespace, value)
                found[entry.place] = entry
    finally:
        reader.close()
    return found


def _operator_entries(snapshot: OperatorSnapshot) -> Iterator[tuple[str, Any, Any, Any]]:
    for name, (_, elements) in snapshot.operator.lists.items():
        yield f"list state '{name}'", NO_KEY, None, list(map(pickle.loads, elements))
    for name, entries in snapshot.operator.maps.items():
        yield f"broadcast state '{name}'", NO_KEY, None, pickle.loads(entries)


def _keyed_entries(groups: dict[int, bytes]) -> Iterator[tuple[str, Any, Any, Any]]:
    for data in groups.values():
        _, states = pickle.loads(data)
        for name, (_, _, rows) in states.items():
            for _, namespace, key, contents in rows:
                yield f"state '{name}'", key, namespace, contents


def _timer_entries(groups: dict[int, bytes]) -> Iterator[tuple[str, Any, Any, Any]]:
    for data in groups.values():
        _, services = pickle.loads(data)
        for name, domains in services.items():
            for clock, rows in zip(_CLOCKS, domains, strict=True):
                for _, time, namespace, key in rows:
                    yield f"timer '{name}' at {time} in {clock}", key, namespace, time
