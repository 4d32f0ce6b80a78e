"""Records what a task reads and sends in an epoch: the input of sources itself, and digests of all output.

Digests are computed from canonical bytes, which depend on the values alone. Pickles depend on which values are the same
object, which differs between a task that has run for several epochs and a restored one. They also depend on the order
of sets, which differs between processes. In canonical bytes each value is written in full, sets are sorted, and objects
are reduced by `__reduce_ex__`, as pickle does.
"""

from __future__ import annotations

import copyreg
import hashlib
import pickle
import secrets
import struct
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.epoch import RecordedOutput, RecordedTask
from opchain.runtime.checkpoint.state_files import FOLDER
from opchain.runtime.functions.sink import BatchSinkWriter, SinkWriter
from opchain.runtime.operators.sinks import SinkWriterOperator
from opchain.runtime.operators.source import SourceOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.operators.pending_batch import BatchTarget
    from opchain.runtime.records.elements import Buffer
    from opchain.runtime.task.operator_chain import OperatorChain

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
    """Writes values one after the other. `path` has the containers of the current value."""

    def __init__(self, write: Callable[[bytes], None], path: tuple[int, ...] = ()) -> None:
        self._write = write
        self._path = path

    def put(self, value: Any) -> None:
        """Writes a value: a letter for its kind, then its content with a length or an end."""
        plain = _PLAIN.get(value.__class__)
        if plain is not None:
            self._write(plain(value))
        elif id(value) in self._path:
            # A container inside itself is written as its distance in the path.
            self._write(b"^%d;" % (len(self._path) - self._path.index(id(value))))
        else:
            _Writer(self._write, (*self._path, id(value))).put_parts(value)

    def put_parts(self, value: Any) -> None:
        """Writes a value that may contain other values. The value is the last in the path."""
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
        for count, value in enumerate(values, 1):  # noqa: B007 - used after the loop
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


_RECORDS = ("collect", "print")
"""The kinds of items with records that tasks send to the driver."""


class EpochRecorder:
    """Records the input and output of a task's open chain. There is one per task; `begin` starts an epoch."""

    def __init__(self, chain: OperatorChain) -> None:
        self._is_source = isinstance(chain.head, SourceOperator)
        self._payloads: list[bytes] = []
        self._digests: dict[str, _Digest] = {}
        for number, pending in enumerate(chain.pending):
            pending.target = _RecordedTarget(pending.target, self._digest(f"exchange {number}"))
            if pending.folds is not None:
                pending.folds.is_allowed = False
        for operator in chain.operators:
            digest = self._digest(f"sink {operator.program.index}")
            if isinstance(operator, SinkWriterOperator) and operator.writer is not None:
                operator.writer = _RecordedWriter(operator.writer, digest)
            context: Any = operator.context
            context.send_to_driver = _recorded_send(context.send_to_driver, digest)
            runtime: Any = context.runtime_context
            runtime.send_to_driver = _recorded_send(runtime.send_to_driver, digest)

    def begin(self, buffers: Iterator[Buffer]) -> Iterator[Buffer]:
        """Begins an epoch, and returns its input."""
        self._payloads.clear()
        for digest in self._digests.values():
            digest.begin()
        return self._kept(buffers) if self._is_source else buffers

    def recorded(
        self, storage: CheckpointStorage, checkpoint_id: int, task: int, attempt_id: str
    ) -> RecordedTask:
        """The record of the epoch. Writes the input of a source to a file."""
        file = None
        if self._payloads:
            name = f"{FOLDER}/{checkpoint_id}/{task}-{attempt_id}-{secrets.token_hex(4)}.input"
            file = storage.put(name, pickle.dumps(self._payloads, 5))
        outputs = (digest.output(name) for name, digest in self._digests.items())
        return RecordedTask(file, tuple(output for output in outputs if output.records))

    def _kept(self, buffers: Iterator[Buffer]) -> Iterator[Buffer]:
        for buffer in buffers:
            self._payloads.append(bytes(buffer.payload))
            yield buffer

    def _digest(self, name: str) -> _Digest:
        return self._digests.setdefault(name, _Digest())


class _Digest:
    """The digest of records, in their order."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._records = 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._times = hashlib.blake2b(digest_size=16)

    def add(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Adds a batch. The ends of batches make no difference, because a latency marker may end one early."""
        self._records += len(values)
        update = self._hash.update
        for value in values:
            update(canonical(value))
        for timestamp in timestamps or ():
            self._times.update(canonical(timestamp))

    def output(self, name: str) -> RecordedOutput:
        both = self._hash.copy()
        both.update(self._times.digest())
        return RecordedOutput(name, self._records, both.hexdigest())


class _RecordedTarget:
    """Wraps the writer of an exchange, and adds its records to a digest."""

    def __init__(self, target: BatchTarget, digest: _Digest) -> None:
        self._target = target
        self._digest = digest

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,
        keys: Sequence[Any] | None,
    ) -> None:
        self._digest.add(values, timestamps)
        self._target.write_batch(values, timestamps, keys)


class _RecordedWriter(BatchSinkWriter[Any]):
    """Wraps the writer of a sink, and adds its records to a digest."""

    def __init__(self, writer: SinkWriter[Any], digest: _Digest) -> None:
        self._writer = writer
        self._digest = digest

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._digest.add(values, None)
        self._writer.write_batch(values, timestamps)

    def flush(self, *, end_of_input: bool) -> None:
        self._writer.flush(end_of_input=end_of_input)

    def prepare_commit(self) -> Sequence[Any]:
        return self._writer.prepare_commit()

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[Any]:
        return self._writer.prepare_commit_of(checkpoint_id)

    def close(self) -> None:
        self._writer.close()


def _recorded_send(send: Callable[[Any], None], digest: _Digest) -> Callable[[Any], None]:
    """Wraps `send_to_driver`, and adds records that are sent to the driver to a digest."""

    def note(item: Any) -> None:
        if item[0] in _RECORDS:
            digest.add(item[2], None)
        send(item)

    return note
