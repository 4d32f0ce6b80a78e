"""State keys as bytes: equal bytes for equal state keys, and for no others.

A database on disk knows keys by their bytes. A pickle is no such thing: it depends on which parts of a key are
one object. Keys of plain classes, and tuples of them, can be read from their bytes, too; a TypedKey can't, as
its identity has less than the key.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from opchain.runtime.state.key_identity import TypedKey
from opchain.runtime.task.record_pickle import dump_records

_LENGTH = 4
_MICROSECOND = dt.timedelta(microseconds=1)
_TYPED = b"T"


def key_bytes(state_key: Any) -> bytes:  # noqa: PLR0911 - a table, most frequent first
    r"""The bytes of a state key.

    >>> key_bytes("a"), key_bytes(b"a"), key_bytes(1)
    (b'sa', b'ba', b'i\x01')
    """
    kind = state_key.__class__
    if kind is str:
        encoded: bytes = b"s" + state_key.encode("utf-8", "surrogatepass")
        return encoded
    if kind is int:
        return b"i" + _of_int(state_key)
    if kind is tuple:
        return b"t" + _joined(map(key_bytes, state_key))
    if kind is TypedKey:
        return _TYPED + _of_identity(state_key.identity)
    if kind is bytes:
        return b"b" + bytes(state_key)
    if state_key is None:
        return b"n"
    if kind is dt.date:
        return b"d" + _of_int(state_key.toordinal())
    if kind is dt.timedelta:
        return b"m" + _of_int(state_key // _MICROSECOND)
    if kind is uuid.UUID:
        return b"u" + bytes(state_key.bytes)
    raise AssertionError(f"{state_key!r} is no state key")


def can_be_read(data: bytes) -> bool:
    """Whether `key_from` gives the state key of bytes."""
    return data[:1] != _TYPED


def key_from(data: bytes) -> Any:  # noqa: PLR0911 - likewise
    """The state key that has these bytes, where it can be read from them."""
    kind, rest = data[:1], data[1:]
    if kind == b"s":
        return rest.decode("utf-8", "surrogatepass")
    if kind == b"i":
        return int.from_bytes(rest, "big", signed=True)
    if kind == b"t":
        return tuple(map(key_from, _parts(rest)))
    if kind == b"b":
        return rest
    if kind == b"n":
        return None
    if kind == b"d":
        return dt.date.fromordinal(int.from_bytes(rest, "big", signed=True))
    if kind == b"m":
        return int.from_bytes(rest, "big", signed=True) * _MICROSECOND
    assert kind == b"u", f"{data!r} are no bytes of a plain key"
    return uuid.UUID(bytes=rest)


def _of_identity(value: Any) -> bytes:  # noqa: PLR0911 - likewise
    """Likewise of the identity of a TypedKey: see key_identity for what is in it."""
    if isinstance(value, type):
        return b"c" + f"{value.__module__}.{value.__qualname__}".encode()
    if value.__class__ is bool:
        return b"1" if value else b"0"
    if isinstance(value, tuple):
        return b"t" + _joined(map(_of_identity, value))
    if isinstance(value, dt.datetime):
        return b"D" + value.replace(fold=0).isoformat().encode()
    if isinstance(value, dt.time):
        return b"C" + _of_time(value)
    if value is None or value.__class__ in _PLAIN:
        return key_bytes(value)
    return b"?" + dump_records(value)


_PLAIN = frozenset({str, int, bytes, dt.date, dt.timedelta, uuid.UUID})


def _of_time(value: dt.time) -> bytes:
    """Times with an offset from UTC are equal where they mean the same, as Python compares them."""
    offset = value.utcoffset()
    seconds = 3600 * value.hour + 60 * value.minute + value.second
    since = dt.timedelta(seconds=seconds, microseconds=value.microsecond)
    if offset is None:
        return b"n" + _of_int(since // _MICROSECOND)
    return b"o" + _of_int((since - offset) // _MICROSECOND)


def _of_int(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


def _joined(parts: Any) -> bytes:
    return b"".join(piece for part in parts for piece in (len(part).to_bytes(_LENGTH, "big"), part))


def _parts(data: bytes) -> list[bytes]:
    found, position = [], 0
    while position < len(data):
        start = position + _LENGTH
        position = start + int.from_bytes(data[position:start], "big")
        found.append(data[start:position])
    return found
