"""The bytes of a buffer: a header that shows damage, and pickled stream elements.

    magic "OPCH" | version, 1 byte | kind, 1 byte | length of the body, 8 bytes | CRC-32, 4 bytes | body

The checksum covers the header, too. So every truncation and every flipped bit is found before anything is unpickled.
Elements are pickled as tuples (tag, fields...), not as instances of this project's classes. That is smaller and faster,
and moving a class to another module does not change the format. The pickles come from tasks of the same job. Timestamps
and columns of ints that a sender computed with numpy are written as 64 bits each, in the byte order of the machine.

`benchmarks/wire.py` compares this with `dumps` and `loads`. The checksum takes 3 microseconds a buffer and 0.15 ns a
byte, once to write and once to read. The standard library has no faster one. Pausing the garbage collector while a
buffer is loaded does not help, as the collector only scans the new containers later. `gc_relaxed` around the
whole task does.
"""

from __future__ import annotations

import pickle
import struct
from array import array
from enum import IntEnum
from typing import TYPE_CHECKING, Any
from zlib import crc32

from opchain.runtime.errors import UnreadableRecordError, WireFormatError
from opchain.runtime.records.columns import Columns
from opchain.runtime.records.elements import (
    CheckpointBarrier,
    EndOfInput,
    LatencyMarker,
    RecordBatch,
    StreamElement,
    Watermark,
    WatermarkStatus,
)
from opchain.runtime.records.record_pickle import (
    dump_flat,
    dump_records,
    looks_flat,
    unpicklable_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


VERSION = 4
_MAGIC = b"OPCH"
_FIELDS = struct.Struct("<4sBBQ")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CHECKSUM.size


class PayloadKind(IntEnum):
    """The kind of a payload's body."""

    ELEMENTS = 1
    REPORT = 2
    RECORDS = 3


def frame(kind: int, body: bytes) -> bytes:
    """A header and the body."""
    fields = _FIELDS.pack(_MAGIC, VERSION, kind, len(body))
    return b"".join((fields, _CHECKSUM.pack(crc32(body, crc32(fields))), body))


def kind_of(payload: bytes | bytearray | memoryview) -> int:
    """The kind of a payload, without verification. 0 if the payload is too short."""
    return payload[5] if len(payload) > HEADER_BYTES else 0


def unframe(kind: int, payload: bytes | bytearray | memoryview) -> memoryview:
    """The body of a payload, without a copy.

    Raises:
        WireFormatError: The payload is truncated, changed, of another kind, or not a payload.
    """
    view = memoryview(payload)
    found = bytes(view[: len(_MAGIC)])
    if found != _MAGIC[: len(found)]:
        raise WireFormatError(
            f"expected a payload that begins with {_MAGIC!r}, found {found!r}: these bytes are corrupt "
            "or were not written by opchain"
        )
    if len(view) < HEADER_BYTES:
        raise WireFormatError(
            f"expected a payload of at least {HEADER_BYTES} bytes, found {len(view)}: it was cut short"
        )
    _, version, found_kind, length = _FIELDS.unpack_from(view)
    if version != VERSION:
        raise WireFormatError(
            f"the payload is in format {version}, expected {VERSION}: use the same version of opchain "
            "on the driver and on all executors"
        )
    body = view[HEADER_BYTES:]
    if len(body) != length:
        raise WireFormatError(
            f"the payload announces {length} bytes and holds {len(body)}: it was cut short or changed"
        )
    (expected,) = _CHECKSUM.unpack_from(view, _FIELDS.size)
    checksum = crc32(body, crc32(view[: _FIELDS.size]))
    if checksum != expected:
        raise WireFormatError(
            f"the payload's checksum is {checksum:08x}, expected {expected:08x}: its {len(view)} "
            f"bytes were altered in transit"
        )
    if found_kind != kind:
        raise WireFormatError(f"the payload is of kind {found_kind}, expected kind {int(kind)}")
    return body


def encode(elements: Sequence[StreamElement]) -> bytes:
    """Encodes elements as a payload.

    Raises:
        UnpicklableRecordError: A record cannot be pickled. The message names the first such record.
    """
    items = [_ENCODERS[type(element)](element) for element in elements]
    lists = (
        column
        for tag, *fields in items
        if tag in _WITH_RECORDS
        for column in ((fields[0],) if tag == _BATCH else fields[0])
        if not isinstance(column, bytes)
    )
    body = dump_flat(items) if all(map(looks_flat, lists)) else None
    try:
        if body is None:
            body = dump_records(items)
    except Exception as error:
        for batch in (element for element in elements if isinstance(element, RecordBatch)):
            unpicklable = unpicklable_record(batch.values)
            if unpicklable is not None:
                raise unpicklable from error
        raise
    return frame(PayloadKind.ELEMENTS, body)


def decode(payload: bytes | bytearray | memoryview) -> list[StreamElement]:
    """Decodes the elements of a payload.

    Raises:
        WireFormatError: The bytes were not written by `encode`.
        UnreadableRecordError: The class of a record is not found in this process, or raises an exception.
    """
    body = unframe(PayloadKind.ELEMENTS, payload)
    try:
        items = pickle.loads(body)
    except MemoryError:
        raise
    except Exception as error:
        raise UnreadableRecordError(
            f"records arrived intact but cannot be unpickled here ({type(error).__name__}: {error}): "
            "their classes must be importable on every executor, in the same version"
        ) from error
    return [_decoder(tag)(*fields) for tag, *fields in items]


_BATCH, _WATERMARK, _STATUS, _MARKER, _BARRIER, _END, _COLUMNS, _ROWS = range(8)
_WITH_RECORDS = (_BATCH, _COLUMNS, _ROWS)

_ENCODERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    RecordBatch: lambda batch: _of_batch(batch.values, _pack_timestamps(batch.timestamps)),
    Watermark: lambda watermark: (_WATERMARK, watermark.timestamp),
    WatermarkStatus: lambda status: (_STATUS, status is WatermarkStatus.IDLE),
    LatencyMarker: lambda marker: (
        _MARKER,
        marker.marked_time_ms,
        marker.operator_id,
        marker.subtask,
    ),
    CheckpointBarrier: lambda barrier: (_BARRIER, barrier.checkpoint_id, barrier.timestamp_ms),
    EndOfInput: lambda _: (_END,),
}

_DECODERS: dict[int, Callable[..., StreamElement]] = {
    _BATCH: lambda values, timestamps: RecordBatch(values, _unpack(timestamps)),
    _COLUMNS: lambda lists, layout, timestamps: RecordBatch(
        Columns(list(map(_unpack, lists)), layout), _unpack(timestamps)
    ),
    _ROWS: lambda lists, layout, timestamps: RecordBatch(
        list(Columns(lists, layout)), _unpack(timestamps)
    ),
    _WATERMARK: Watermark,
    _STATUS: lambda is_idle: WatermarkStatus.IDLE if is_idle else WatermarkStatus.ACTIVE,
    _MARKER: LatencyMarker,
    _BARRIER: CheckpointBarrier,
    _END: EndOfInput,
}


def _decoder(tag: int) -> Callable[..., StreamElement]:
    decoder = _DECODERS.get(tag)
    if decoder is None:
        raise WireFormatError(
            f"the payload holds an element with tag {tag!r}, expected one of {sorted(_DECODERS)}"
        )
    return decoder


def _of_batch(values: list[Any] | Columns, timestamps: Any) -> tuple[Any, ...]:
    columns = values if isinstance(values, Columns) else Columns.of_rows(values)
    if columns is None:
        return _BATCH, values, timestamps
    lists = tuple(
        column.tobytes() if isinstance(column, array) else column for column in columns.lists
    )
    return _COLUMNS if columns is values else _ROWS, lists, columns.layout, timestamps


def _pack_timestamps(
    timestamps: list[int | None] | None,
) -> bytes | list[int | None] | None:
    """64 bits each. Writing and reading them takes 2/3 of the time of a pickled list."""
    if timestamps is None:
        return None
    try:
        return array("q", timestamps).tobytes()  # type: ignore[type-var]  # None raises TypeError
    except (TypeError, OverflowError):
        # Some record has none, or all.
        return None if timestamps.count(None) == len(timestamps) else timestamps


def _unpack(packed: Any) -> Any:
    return array("q", packed).tolist() if isinstance(packed, bytes) else packed
