"""Hashers for declared key types, because Python has fewer types than Java.

A Python int is hashed as `Long` unless the key type says `Integer`, and a float as `Double` unless it says `Float`. A
hasher converts a key to the declared type (True is the `Integer` 1), and refuses a key that the type cannot hold. So a
key has one hash code under one declared type. A hasher is a callable from a key to a signed 32-bit int. None is only
accepted inside tuples, lists and rows.
"""

import datetime as dt
import decimal
import numbers
import operator
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from opchain.runtime.errors import KeyTypeError, short_repr
from opchain.runtime.state.keys.java_hash import (
    Hasher,
    hash_big_integer,
    hash_bool,
    hash_bytes,
    hash_date,
    hash_datetime,
    hash_decimal,
    hash_double,
    hash_duration,
    hash_instant,
    hash_local_date_time,
    hash_long,
    hash_point_in_time,
    hash_row,
    hash_str,
    hash_time,
    hash_timedelta,
    hash_uuid,
    hasher_of_class,
    java_hash_code,
    plain_scalar,
    polynomial,
    signed,
    utf16_units,
)

_FLOAT, _INT = struct.Struct(">f"), struct.Struct(">i")
_FLOAT_NAN_CODE = 0x7FC00000


def mismatch(key: object, type_name: str, expected: str) -> KeyTypeError:
    """The error for a key that its declared type cannot hold."""
    found = f"{short_repr(key)} ({type(key).__name__})"
    return KeyTypeError(f"{found} is not a value of the key type {type_name}: expected {expected}")


@dataclass(frozen=True)
class IntegerType:
    """Hashes as Java's integer class with this number of bits. Below 64 bits the hash code is the value."""

    type_name: str
    bits: int

    def __call__(self, key: object) -> int:
        """The hash code of an integer in range. A bool is 0 or 1, and a float is truncated as in PyFlink."""
        limit = 1 << (self.bits - 1)
        expected = f"an int from {-limit} to {limit - 1}"
        try:
            value = int(key) if isinstance(key, float) else operator.index(key)  # type: ignore[arg-type]
        except TypeError:
            raise mismatch(key, self.type_name, expected) from None
        if not -limit <= value < limit:
            raise mismatch(key, self.type_name, expected)
        return hash_long(value) if self.bits == 64 else value  # noqa: PLR2004  (Long)


@dataclass(frozen=True)
class CheckedType:
    """Hashes instances of one Python class and refuses others."""

    type_name: str
    python: type
    hash: Hasher

    def __call__(self, key: object) -> int:
        """The hash code of an instance of the class."""
        value = plain_scalar(key)
        if not isinstance(value, self.python):
            raise mismatch(key, self.type_name, f"an instance of {self.python.__name__}")
        return self.hash(value)


def _as_float(key: object, type_name: str) -> float:
    value = plain_scalar(key)
    if not isinstance(value, numbers.Real):
        raise mismatch(key, type_name, "a float or int")
    try:
        return float(value)
    except OverflowError:
        raise mismatch(key, type_name, "a number in the range of a double") from None


def hash_declared_double(key: object) -> int:
    """`Double.hashCode` of a float or int."""
    return hash_double(_as_float(key, "Double"))


def hash_declared_float(key: object) -> int:
    """`Float.hashCode` of the nearest 32-bit float."""
    value = _as_float(key, "Float")
    if value != value:  # noqa: PLR0124  (only a NaN differs from itself)
        return _FLOAT_NAN_CODE
    try:
        code: int = _INT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        raise mismatch(key, "Float", "a number in the range of a 32-bit float") from None
    return code


def hash_declared_big_integer(key: object) -> int:
    """`BigInteger.hashCode` of an int of any size."""
    try:
        return hash_big_integer(operator.index(key))  # type: ignore[arg-type]
    except TypeError:
        raise mismatch(key, "BigInteger", "an int") from None


def hash_character(key: object) -> int:
    """`Character.hashCode`, the UTF-16 unit."""
    units = utf16_units(key) if isinstance(key, str) else ()
    if len(units) != 1:
        raise mismatch(key, "Character", "a str of one UTF-16 unit")
    return units[0]


def hash_declared_instant(key: object) -> int:
    """`Instant.hashCode` of an Instant or an aware datetime."""
    if hasher_of_class(type(key)) is hash_instant:
        return hash_instant(key)
    if isinstance(key, dt.datetime) and key.utcoffset() is not None:
        return hash_point_in_time(key)
    raise mismatch(key, "Instant", "an Instant or a datetime with a zone")


def hash_declared_duration(key: object) -> int:
    """`Duration.hashCode` of a Duration or timedelta."""
    if hasher_of_class(type(key)) is hash_duration:
        return hash_duration(key)
    if isinstance(key, dt.timedelta):
        return hash_timedelta(key)
    raise mismatch(key, "Duration", "a Duration or timedelta")


def hash_declared_bytes(key: object) -> int:
    """`Arrays.hashCode` of bytes or a bytearray."""
    if not isinstance(key, (bytes, bytearray)):
        raise mismatch(key, "byte[]", "bytes or a bytearray")
    return hash_bytes(key)


NAMED_HASHERS: Mapping[str, Hasher] = MappingProxyType(
    {
        "Boolean": CheckedType("Boolean", bool, hash_bool),
        "Byte": IntegerType("Byte", 8),
        "Short": IntegerType("Short", 16),
        "Integer": IntegerType("Integer", 32),
        "Long": IntegerType("Long", 64),
        "BigInteger": hash_declared_big_integer,
        "Float": hash_declared_float,
        "Double": hash_declared_double,
        "BigDecimal": CheckedType("BigDecimal", decimal.Decimal, hash_decimal),
        "Character": hash_character,
        "String": CheckedType("String", str, hash_str),
        "byte[]": hash_declared_bytes,
        "LocalDate": CheckedType("LocalDate", dt.date, hash_date),
        "LocalTime": CheckedType("LocalTime", dt.time, hash_time),
        "LocalDateTime": CheckedType("LocalDateTime", dt.datetime, hash_local_date_time),
        "Instant": hash_declared_instant,
        "Duration": hash_declared_duration,
        "UUID": CheckedType("UUID", uuid.UUID, hash_uuid),
        # The hash codes of java.sql depend on the time zone of the JVM; those of java.time do not.
        "Date": CheckedType("Date", dt.date, hash_date),
        "Time": CheckedType("Time", dt.time, hash_time),
        "Timestamp": CheckedType("Timestamp", dt.datetime, hash_datetime),
        "Object": java_hash_code,
    }
)
"""By the simple name of the Java class."""


def hasher_named(name: str) -> Hasher:
    """The hasher of a Java class, such as "Integer", "String" or "byte[]".

    >>> hasher_named("Integer")(-1), hasher_named("Long")(-1)
    (-1, 0)

    Raises:
        ValueError: If no hasher has that name.
    """
    if name not in NAMED_HASHERS:
        names = ", ".join(NAMED_HASHERS)
        raise ValueError(f"unknown key hasher {name!r}; the names are {names}")
    return NAMED_HASHERS[name]


@dataclass(frozen=True)
class TupleType:
    """Hashes a tuple as Flink's `Tuple` with these field types; a field may be None."""

    fields: tuple[Hasher, ...]

    def __call__(self, key: object) -> int:
        """The hash code of a tuple with as many fields."""
        if not isinstance(key, tuple) or len(key) != len(self.fields):
            raise mismatch(key, "Tuple", f"a tuple of {len(self.fields)} fields")
        return polynomial([_nested(*pair) for pair in zip(self.fields, key, strict=True)])


@dataclass(frozen=True)
class ListType:
    """Hashes a list as `java.util.List` with this element type; an element may be None."""

    element: Hasher

    def __call__(self, key: object) -> int:
        """The hash code of a list."""
        if not isinstance(key, list):
            raise mismatch(key, "List", "a list")
        return polynomial([_nested(self.element, element) for element in key], 1)


@dataclass(frozen=True)
class RowType:
    """Hashes a Row as Flink's `Row` with these field types; a field may be None."""

    fields: tuple[Hasher, ...]

    def __call__(self, key: Any) -> int:
        """The hash code of a Row with as many values."""
        if hasher_of_class(type(key)) is not hash_row or len(key) != len(self.fields):
            raise mismatch(key, "Row", f"a Row of {len(self.fields)} fields")
        fields = polynomial([in_row(*pair) for pair in zip(self.fields, key, strict=True)], 1)
        return signed(31 * key.get_row_kind().value + fields)


def tuple_of(*fields: Hasher) -> TupleType:
    """A hasher for tuples with these field types.

    >>> tuple_of(hasher_named("String"), hasher_named("Integer"))(("a", -1))
    3006
    """
    return TupleType(fields)


def list_of(element: Hasher) -> ListType:
    """A hasher for lists with this element type."""
    return ListType(element)


def row_of(*fields: Hasher) -> RowType:
    """A hasher for Rows with these field types."""
    return RowType(fields)


def hasher_of_type(key_type: Any) -> Hasher | None:
    """The hasher of a key type, or None if keys are hashed by their class.

    `Types.INT()` hashes as Java's Integer, `Types.TUPLE([Types.STRING(), Types.SHORT()])` field by field. Keys of types
    without a hasher (PICKLED, arrays of numbers) are hashed by their class.
    """
    java_class = getattr(key_type, "java_class", "Object")
    if java_class == "Tuple":
        return tuple_of(*map(_field_hasher, key_type.get_field_types()))
    if java_class == "Row":
        return row_of(*map(_field_hasher, key_type.get_field_types()))
    if java_class == "List":
        return list_of(_field_hasher(key_type.element_type))
    return None if java_class == "Object" else NAMED_HASHERS.get(java_class)


def _field_hasher(field_type: Any) -> Hasher:
    return hasher_of_type(field_type) or hasher_named("Object")


def _nested(hasher: Hasher, value: object) -> int:
    return 0 if value is None else hasher(value)


def in_row(hasher: Hasher, value: object) -> int:
    """The hash code of a field of a Row, which hashes all but lists as an array of one (see java_hash.py)."""
    if value is None:
        return 0
    if isinstance(hasher, ListType) and isinstance(value, list):
        return polynomial([in_row(hasher.element, element) for element in value], 1)
    return 31 + hasher(value)
