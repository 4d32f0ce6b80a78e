"""Values as bytes that depend on nothing but the values.

Pickles don't: they say which objects are one and the same, and that differs between a task that has lived for
epochs and one that was restored; and the order of sets depends on the process. Here each value is written out
where it stands, sets are sorted, and objects are what `__reduce_ex__` says, as for pickle.
"""

from __future__ import annotations

import copyreg
import struct
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
