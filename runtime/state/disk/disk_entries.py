"""The entries of one state and namespace in a TableStore, used like a dictionary; and state keys as bytes.

A database on disk compares keys by their bytes. A pickle cannot be such a key, because it depends on which parts of the
value are the same object. So state keys have an encoding in which equal keys have equal bytes. Keys of plain classes,
and tuples of them, can be decoded again. A TypedKey cannot, because its identity has less than the key.

States, operators and generated code use these entries like a dictionary. Recently used contents are cached as objects.
An object is pickled when it is written back: when the cache is full, and before an iteration. An operator may change
contents in place only while it processes the record for which it read them. Functions never get these objects (see
disk_backend.py).

In the database an entry is

    D <space> <key>          -> <place> <pickled contents>
    O <space> <place>        -> 0 <key>, or 1 <pickled state key> if the key can't be decoded

A *place* is a number, and entries are iterated by place. It has three parts. The first part, the *run*, is the number
of the changes with which the entry was restored; entries of this run have a greater number. So a restored entry gets
its old place among the others. The second part counts the entries. The last part is the key group of a restored entry,
which distinguishes equal places that different subtasks gave.
"""

from __future__ import annotations

import datetime as dt
import pickle
import uuid
from collections.abc import Iterator, MutableMapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.state.keys.key_identity import TypedKey

if TYPE_CHECKING:
    from opchain.runtime.state.disk.disk_backend import TableStore


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
    raise AssertionError(f"{state_key!r} is not a state key")


def is_decodable(data: bytes) -> bool:
    """Whether `decoded_key` can decode these bytes."""
    return data[:1] != _TYPED


def decoded_key(data: bytes) -> Any:  # noqa: PLR0911 - likewise
    """The state key that `key_bytes` encoded, unless it is a TypedKey."""
    kind, rest = data[:1], data[1:]
    if kind == b"s":
        return rest.decode("utf-8", "surrogatepass")
    if kind == b"i":
        return int.from_bytes(rest, "big", signed=True)
    if kind == b"t":
        return tuple(map(decoded_key, _parts(rest)))
    if kind == b"b":
        return rest
    if kind == b"n":
        return None
    if kind == b"d":
        return dt.date.fromordinal(int.from_bytes(rest, "big", signed=True))
    if kind == b"m":
        return int.from_bytes(rest, "big", signed=True) * _MICROSECOND
    assert kind == b"u", f"{data!r} are not the bytes of a plain key"
    return uuid.UUID(bytes=rest)


def _of_identity(value: Any) -> bytes:  # noqa: PLR0911 - likewise
    """The bytes of a TypedKey's identity, which key_identity.py builds."""
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
    """The bytes of a time. As in Python, times with different offsets from UTC may be equal."""
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


_CACHE_ENTRIES = 4096
_CACHE_BYTES = 64 << 20
_CHUNK = 1024
_FEW = 256
_PLACE = 14
"""Bytes: 4 of the run, 8 of the position in it, 2 of the key group."""

_GROUP_BITS = 16
RUN_BITS = 64
"""The run is shifted left by so many bits, in front of the position."""


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


_ABSENT = _Absent()


class _Slot:
    """A cached entry. `stored` is the entry as bytes in the database, or None if it is not there."""

    __slots__ = ("contents", "key", "place", "stored")

    def __init__(self, key: bytes, place: bytes, contents: Any, stored: bytes | None) -> None:
        self.key = key
        self.place = place
        self.contents = contents
        self.stored = stored


class DiskSpaces:
    """What all DiskEntries of one backend share: the database, the numbers of spaces, and the size of the cache."""

    def __init__(self, database: TableStore, where: str) -> None:
        self.database = database
        self.where = where
        self.cached = 0
        self.cached_bytes = 0
        self.next_place = 0
        self._in_use: dict[int, DiskEntries] = {}
        self._next_space = 0

    @property
    def is_unused(self) -> bool:
        """Whether no entry was ever read or written."""
        return not (self.next_place or self.cached)

    def begin_run(self, run: int) -> None:
        """Places new entries after all entries of earlier runs."""
        self.next_place = max(self.next_place, run << RUN_BITS)

    def new_number(self) -> int:
        """A new number for a space."""
        self._next_space += 1
        return self._next_space

    def use(self, entries: DiskEntries) -> None:
        """Notes that entries of a space are cached."""
        self._in_use[entries.number] = entries

    def forget(self, entries: DiskEntries) -> None:
        """Notes that no entry of a space is cached any more."""
        self._in_use.pop(entries.number, None)

    def trim(self) -> None:
        """Writes back and evicts all cached entries if there are too many. No caller may hold contents of one."""
        if self.cached > _CACHE_ENTRIES or self.cached_bytes > _CACHE_BYTES:
            for entries in list(self._in_use.values()):
                entries.evict()


class DiskEntries(MutableMapping[Any, Any]):
    """See the module. `name` is the name of the state in messages."""

    __slots__ = ("_bytes", "_count", "_data", "_order", "_slots", "_spaces", "name", "number")

    def __init__(self, spaces: DiskSpaces, name: str) -> None:
        self.name = name
        self.number = spaces.new_number()
        prefix = self.number.to_bytes(8, "big")
        self._data, self._order = b"D" + prefix, b"O" + prefix
        self._spaces = spaces
        self._slots: dict[Any, _Slot] = {}
        self._bytes = 0
        self._count = 0

    # Single keys

    def get(self, key: Any, default: Any = None) -> Any:
        """The contents of a key."""
        slot = self._slots.get(key) or self._load(key)
        return default if slot.contents is _ABSENT else slot.contents

    def __getitem__(self, key: Any) -> Any:
        slot = self._slots.get(key) or self._load(key)
        if slot.contents is _ABSENT:
            raise KeyError(key)
        return slot.contents

    def __setitem__(self, key: Any, contents: Any) -> None:
        slot = self._slots.get(key) or self._load(key)
        if slot.contents is _ABSENT:
            spaces = self._spaces
            slot.place = (spaces.next_place << _GROUP_BITS).to_bytes(_PLACE, "big")
            spaces.next_place += 1
            self._count += 1
        slot.contents = contents

    def __delitem__(self, key: Any) -> None:
        slot = self._slots.get(key) or self._load(key)
        if slot.contents is _ABSENT:
            raise KeyError(key)
        slot.contents = _ABSENT
        self._count -= 1

    def __contains__(self, key: object) -> bool:
        slot = self._slots.get(key) or self._load(key)
        return slot.contents is not _ABSENT

    def put_at(self, key: Any, place: int, key_group: int, contents: Any) -> None:
        """Adds a key that is known to be new, at a given place, without a look-up in the database."""
        self._make_room()
        at = (place << _GROUP_BITS | key_group).to_bytes(_PLACE, "big")
        self._slots[key] = _Slot(key_bytes(key), at, contents, None)
        self._spaces.cached += 1
        self._count += 1

    def _load(self, key: Any) -> _Slot:
        self._make_room()
        spaces = self._spaces
        found = key_bytes(key)
        stored = spaces.database.get(self._data + found)
        if stored is None:
            slot = _Slot(found, b"", _ABSENT, None)
        else:
            slot = _Slot(found, stored[:_PLACE], self._read(stored), stored)
            self._add_bytes(len(stored))
        spaces.cached += 1
        self._slots[key] = slot
        return slot

    def _make_room(self) -> None:
        if len(self._slots) >= _CACHE_ENTRIES or self._spaces.cached_bytes > _CACHE_BYTES:
            # Only this space: the caller may still hold contents of other spaces under the same key.
            self.evict()
        if not self._slots:
            self._spaces.use(self)

    # All keys

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        """The keys in order of place. Keys that are added or removed during the iteration may or may not be included."""
        self.write_back()
        first, end = self._order, _end(self._order)
        while chunk := list(islice(self._spaces.database.scan(first, end), _CHUNK)):
            for _, value in chunk:
                yield _named(value)
            first = chunk[-1][0] + b"\0"

    def __reversed__(self) -> Iterator[Any]:
        self.write_back()
        scan = self._spaces.database.scan_back(_end(self._order), self._order)
        return (_named(value) for _, value in scan)

    def items(self) -> Iterator[tuple[Any, Any]]:  # type: ignore[override]
        """Keys and contents in order of place. Contents that are read from the database are not cached."""
        get = self._spaces.database.get
        for key in self:
            slot = self._slots.get(key)
            if slot is None:
                stored = get(self._data + key_bytes(key))
                if stored is not None:
                    yield key, self._read(stored)
            elif slot.contents is not _ABSENT:
                yield key, slot.contents

    def values(self) -> Iterator[Any]:  # type: ignore[override]
        """The contents in order of place, which are not cached either."""
        return (contents for _, contents in self.items())

    def places(self) -> Iterator[int]:
        """The places of all entries, in ascending order."""
        self.write_back()
        start = len(self._order)
        for key, _ in self._spaces.database.scan(self._order, _end(self._order)):
            yield int.from_bytes(key[start:], "big") >> _GROUP_BITS

    def rows(self) -> Iterator[tuple[int, Any, Any]]:
        """(place, state key, contents) of all entries in the order of key bytes, which is the fastest iteration."""
        self.write_back()
        database, start = self._spaces.database, len(self._data)
        for data_key, stored in database.scan(self._data, _end(self._data)):
            found, place = data_key[start:], stored[:_PLACE]
            key = (
                decoded_key(found)
                if is_decodable(found)
                else _named(database.get(self._order + place))
            )
            yield int.from_bytes(place, "big") >> _GROUP_BITS, key, self._read(stored)

    def clear(self) -> None:
        """Removes all entries."""
        stored = [slot.stored for slot in self._slots.values() if slot.stored is not None]
        keys = [slot.key for slot in self._slots.values() if slot.stored is not None]
        is_small = self._count <= len(stored) <= _FEW
        self._forget_slots()
        database = self._spaces.database
        if is_small:
            # A few keys are deleted one by one, because each later look-up has to check a deleted range.
            gone = [self._data + key for key in keys]
            database.write((), gone + [self._order + found[:_PLACE] for found in stored])
            is_small = not any(True for _ in database.scan(self._data, _end(self._data)))
        if not is_small:
            database.delete_range(self._data, _end(self._data))
            database.delete_range(self._order, _end(self._order))
        self._count = 0

    # The database

    def write_back(self) -> None:
        """Writes changed cached entries to the database, and keeps them in the cache.

        Raises:
            StateError: Contents can't be pickled.
        """
        puts: list[tuple[bytes, bytes]] = []
        gone: list[bytes] = []
        for key, slot in self._slots.items():
            before = slot.stored
            if slot.contents is _ABSENT:
                if before is not None:
                    gone += (self._data + slot.key, self._order + before[:_PLACE])
                    self._add_bytes(-len(before))
                    slot.stored = None
                continue
            now = slot.place + self._pickled(slot.contents)
            if now == before:
                continue
            puts.append((self._data + slot.key, now))
            if before is None or before[:_PLACE] != slot.place:
                if before is not None:
                    gone.append(self._order + before[:_PLACE])
                name = b"\0" + slot.key if is_decodable(slot.key) else b"\1" + dump_records(key)
                puts.append((self._order + slot.place, name))
            self._add_bytes(len(now) - len(before or b""))
            slot.stored = now
        if puts or gone:
            self._spaces.database.write(puts, gone)

    def evict(self) -> None:
        """Writes back and evicts all cached entries."""
        self.write_back()
        self._forget_slots()

    def _forget_slots(self) -> None:
        self._spaces.cached -= len(self._slots)
        self._add_bytes(-self._bytes)
        self._slots.clear()
        self._spaces.forget(self)

    def _add_bytes(self, size: int) -> None:
        self._bytes += size
        self._spaces.cached_bytes += size

    def _pickled(self, contents: Any) -> bytes:
        try:
            return dump_records(contents)
        except Exception as error:
            raise StateError(
                f"{self._spaces.where}: state '{self.name}' can't be saved: {short_repr(contents)} can't be "
                f"pickled ({type(error).__name__}: {error}); keep plain values in state"
            ) from error

    def _read(self, stored: bytes) -> Any:
        try:
            return pickle.loads(stored[_PLACE:])
        except Exception as error:
            raise StateError(
                f"{self._spaces.where}: state '{self.name}' holds a value that can't be read "
                f"back from disk ({type(error).__name__}: {error}); keep plain values in state"
            ) from error


def _end(prefix: bytes) -> bytes:
    """The first key after all keys that begin with a prefix."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def _named(value: bytes | None) -> Any:
    """The state key in the value of an `O` entry."""
    assert value is not None, "each D entry has an O entry"
    return pickle.loads(value[1:]) if value[:1] == b"\1" else decoded_key(value[1:])
