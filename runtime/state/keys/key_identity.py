"""Decides which keys are equal, as Java does, with keys that Python dictionaries accept.

In Python, 1, True and 1.0 are equal, and so are 0.0 and -0.0, and Decimal("1.0") and Decimal("1.00"). A NaN is not equal
to itself, and a list cannot be a key of a dictionary. Flink compares keys as Java does. There the values of each of
these groups are different keys, in different key groups, a NaN is one key, and a list can be a key.

So the tables of keyed state are indexed by the *state key* of a key. For the classes in `PLAIN_CLASSES`, and for tuples
of them, this is the key itself. Most keys are of these classes. The check, one look-up of the class, takes 12 ns.
Other keys are wrapped in a TypedKey, which compares as Java does and takes 1 to 2 microseconds.

A declared key type also decides which keys are equal: as an integer, True is 1; as a `Double`, 1 is 1.0. A named tuple
and an equal tuple are one key in Java, and two keys here. The same is true for all subclasses of the plain classes.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import operator
import struct
import uuid
from itertools import chain
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.state.keys.java_hash import (
    Hasher,
    compared_fields,
    compared_values,
    hasher_of_class,
    java_hash_code,
    plain_scalar,
)
from opchain.runtime.state.keys.key_groups import KeyGroupRange, key_group
from opchain.runtime.state.keys.key_hashers import (
    IntegerType,
    hash_declared_big_integer,
    hash_declared_double,
    hash_declared_float,
)
from opchain.runtime.state.keys.pyflink_keys import RowKey, pickled

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence


PLAIN_CLASSES: frozenset[type] = frozenset({str, int, bytes, dt.date, dt.timedelta, uuid.UUID})
"""Classes whose instances compare as in Java, and never equal an instance of another class in this set."""

_PLAIN_INSIDE = PLAIN_CLASSES | {type(None)}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_DOUBLE, _FLOAT = struct.Struct(">d"), struct.Struct(">f")
_NAN = struct.pack(">d", float("nan"))


class TypedKey:
    """A key that Python's own equality would confuse with others, or that cannot be hashed."""

    __slots__ = ("_hash", "identity", "key")

    def __init__(self, key: Any, identity: Hashable) -> None:
        self.key = key
        self.identity = identity
        self._hash = hash(identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedKey) and self.identity == other.identity

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedKey, (self.key, self.identity)  # hashes differ between processes

    def __repr__(self) -> str:
        return repr(self.key)


def state_key(key: Any) -> Any:
    """The key of a state table that represents a key. It is equal for equal keys only.

    >>> state_key("a"), state_key(("a", 1))
    ('a', ('a', 1))
    >>> state_key(True) == state_key(1), state_key(0.0) == state_key(-0.0)
    (False, False)

    Two objects of another class are the same key if their attributes are equal.
    """
    kind = key.__class__
    if kind in PLAIN_CLASSES:
        return key
    if kind is tuple:
        for value in key:
            if value.__class__ not in _PLAIN_INSIDE:
                return TypedKey(key, _identity(key))
        return key
    if kind is bool:
        return _TRUE if key else _FALSE
    if key is None:
        return _NONE
    return TypedKey(key, _identity(key))


_NONE = TypedKey(None, (type(None), None))
_TRUE, _FALSE = TypedKey(True, (bool, True)), TypedKey(False, (bool, False))


def all_are_plain(keys: Sequence[Any]) -> bool:
    """Whether all keys, which are of one class, are their own state keys.

    >>> all_are_plain([("a", None), ("b", 1)]), all_are_plain([("a", 1), ("b", 1.0)]), all_are_plain([1.0])
    (True, False, False)
    """
    kind = keys[0].__class__
    if kind is tuple:
        return _PLAIN_INSIDE.issuperset(map(type, chain.from_iterable(keys)))
    return kind in PLAIN_CLASSES


def key_of(state_key: Any) -> Any:
    """The key that a state key represents."""
    return state_key.key if state_key.__class__ is TypedKey else state_key


@dataclasses.dataclass(frozen=True, slots=True)
class KeyIdentity:
    """Which keys are equal for one operator.

    The state key is the key itself for `plain` classes, and for a tuple whose fields are all of `plain_fields`. For
    other keys it is the result of `of`, which may be called for any key.
    """

    plain: frozenset[type]
    of: Callable[[Any], Any]
    plain_fields: frozenset[type] = frozenset()


def key_identity(hasher: Hasher | None = None) -> KeyIdentity:
    """The identity of keys, given the hasher of their declared type, if there is one."""
    if isinstance(hasher, RowKey):
        hasher = hasher.inner
    if isinstance(hasher, IntegerType) or hasher is hash_declared_big_integer:
        return KeyIdentity(frozenset({int}), _as_integer)
    if hasher is hash_declared_double:
        return KeyIdentity(frozenset(), _as_double)
    if hasher is hash_declared_float:
        return KeyIdentity(frozenset(), _as_float)
    return _BY_PYTHON_CLASS


_BY_PYTHON_CLASS = KeyIdentity(PLAIN_CLASSES, state_key, _PLAIN_INSIDE)


_MOST_CHECKED_KEYS = 1 << 16


class SubtaskKeyCheck:
    """Wraps a KeyIdentity, and refuses keys of other subtasks.

    A stream that is reinterpreted as keyed must be partitioned as `key_by` would have done it. Otherwise the records of
    a key are spread over subtasks, each with its own state, and the state is lost at the next change of parallelism.
    Flink checks this when state is used: `StateTable.getMapForKeyGroup`.

    Args:
        identity: Which keys are equal.
        key_groups: The key groups of this subtask.
        max_parallelism: The number of all key groups.
        hasher: The hash function of the declared key type, if there is one.
        where: The operator and its call site, for messages.
    """

    def __init__(
        self,
        identity: KeyIdentity,
        key_groups: KeyGroupRange,
        max_parallelism: int,
        hasher: Hasher | None,
        where: str,
    ) -> None:
        self._identify = identity.of
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._hasher = hasher or java_hash_code
        self._where = where
        self._known: set[Any] = set()

    @property
    def identity(self) -> KeyIdentity:
        """The identity with this check, which also checks keys of plain classes."""
        return KeyIdentity(frozenset(), self)

    def __call__(self, key: Any) -> Any:
        """The state key of a key.

        Raises:
            StateError: The key belongs to another subtask.
        """
        state_key = self._identify(key)
        if state_key in self._known:
            return state_key
        group = key_group(key, self._max_parallelism, self._hasher)
        if group not in self._key_groups:
            first, last = self._key_groups.first, self._key_groups.last
            raise StateError(
                f"{self._where} gets the key {short_repr(key)}, which belongs to key group {group}, in "
                f"the subtask of the key groups {first} to {last}; reinterpret_as_keyed_stream() "
                f"needs a stream that is already partitioned by this key; otherwise use key_by()"
            )
        if len(self._known) >= _MOST_CHECKED_KEYS:
            self._known.clear()
        self._known.add(state_key)
        return state_key


def _as_integer(key: Any) -> Any:
    if isinstance(key, float):
        return int(key)  # as PyFlink does
    return _NONE if key is None else int(operator.index(key))


def _as_double(key: Any) -> Any:
    if key is None:
        return _NONE
    hash_declared_double(key)  # raises if it is not a number
    return state_key(float(key))


def _as_float(key: Any) -> Any:
    if key is None:
        return _NONE
    hash_declared_float(key)
    return state_key(_FLOAT.unpack(_FLOAT.pack(key))[0])


def _identity(value: Any) -> Hashable:
    """A hashable form that is equal if Java calls two values equal: a plain value, or a tuple that begins with a kind."""
    kind = value.__class__
    if kind in _PLAIN_INSIDE:
        plain: Hashable = value
        return plain
    if hasher_of_class(kind) is None:
        return "pickle", pickled(value)
    for ancestor, identify in _IDENTITIES:
        if isinstance(value, ancestor):
            return identify(value)
    if compared_fields(kind) is not None:
        return kind, *map(_identity, compared_values(value))
    if hasattr(value, "get_row_kind"):
        return "Row", value.get_row_kind().value, *map(_identity, value)
    scalar = plain_scalar(value)
    # If it is not a numpy scalar, it is an Instant or a Duration, which compare as in Java.
    return (kind, value) if scalar is value else _identity(scalar)


def _identity_of_float(value: float) -> Hashable:
    return float, _NAN if value != value else _DOUBLE.pack(value)  # noqa: PLR0124  (only a NaN differs from itself)


def _identity_of_datetime(value: dt.datetime) -> Hashable:
    return (dt.datetime, value) if value.utcoffset() is None else ("Instant", value - _EPOCH)


_IDENTITIES: tuple[tuple[type, Callable[[Any], Hashable]], ...] = (
    (enum.Flag, lambda value: (value.__class__, value.value)),
    (enum.Enum, lambda value: (value.__class__, value.name)),
    (bool, lambda value: (bool, value)),  # inside containers
    (float, _identity_of_float),
    (decimal.Decimal, lambda value: (decimal.Decimal, value.as_tuple())),
    (dt.datetime, _identity_of_datetime),
    (dt.time, lambda value: (dt.time, value)),
    (tuple, lambda value: (tuple, *map(_identity, value))),
    (list, lambda value: (list, *map(_identity, value))),
    (bytearray, bytes),
    # An instance of a subclass of a plain class is converted to the plain class.
    (str, str),
    (int, int),
    (bytes, bytes),
    (dt.date, lambda value: (dt.date, value.toordinal())),
    (dt.timedelta, lambda value: (dt.timedelta, value)),
    (uuid.UUID, lambda value: (uuid.UUID, value.int)),
)
