"""Java's `hashCode` of the Java value that a Python key stands for.

Flink chooses the key group of a record from `key.hashCode()`. So a key is in the same key group as in Flink only if
these numbers equal Java's. Python's `hash()` can't be used: it differs between processes (str, bytes, None) and
between versions.

| Python | hashed as |
| --- | --- |
| int | `Long`; beyond 64 bits `BigInteger` |
| bool, float, str | `Boolean`, `Double`, `String` (over UTF-16 units; lone surrogates are units too) |
| bytes, bytearray | content of a `byte[]` (`Arrays.hashCode`; Flink refuses arrays as keys) |
| Decimal | `BigDecimal`: 1.0 and 1.00 differ, as they do in Java and not in Python |
| date, naive time, naive datetime | `LocalDate`, `LocalTime`, `LocalDateTime` |
| aware datetime or our Instant, timedelta or our Duration | `Instant`, `Duration` |
| UUID | `java.util.UUID` |
| Enum (IntEnum and StrEnum too) | `String` of the member's name; in Java it differs per process, Flink refuses it |
| Flag | its value as `Long`: the name of a combination depends on the version of Python |
| tuple (named too), list, Row | Flink's `Tuple`, `java.util.List`, Flink's `Row` by position (names do not count) |
| dataclass | 31 h + field over the fields that `==` compares, from `String` of the class name (no module) |
| pydantic model | as a dataclass of its fields; one with extra fields is refused |
| numpy scalar | the Python bool, int or float it equals |
| None | 0 inside any of these; not a key by itself |

Narrower Java types (`Integer`, `Float`, ...) have other hash codes. A declared key type selects them from
key_hashers.py. Values that are equal in Python may have different hash codes here: 1, True and 1.0; 0.0 and -0.0.
The numbers were taken from JDK 17 and 25, which agree, and from the classes of Flink 2.3.
"""

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from opchain.runtime.errors import UnstableKeyError, short_repr

Hasher: TypeAlias = Callable[[Any], int]
"""From a key to its hash code, a 32-bit signed int that is the same in every process."""

MASK = 0xFFFFFFFF
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

_ALLOWED = (
    "an int, bool, float, str, bytes, Decimal, date, time without zone, datetime, timedelta, UUID or "
    "Enum, or a tuple, list, Row, dataclass or pydantic model of these"
)
_NAN_CODE = 0x7FF80000  # Double.hashCode treats every NaN as this one
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_DOUBLE, _LONG = struct.Struct(">d"), struct.Struct(">q")
_STRIDE = 24


def java_hash_code(key: object) -> int:
    """The 32-bit signed hash code that Java gives to a key.

    >>> [java_hash_code(key) for key in (1, True, 1.0, "1", (1, "1"))]
    [1, 1231, 1072693248, 49, 80]

    Raises:
        UnstableKeyError: If the key is None, or is or holds a value without a stable hash.
    """
    if key is None:
        raise UnstableKeyError(
            "a key must not be None (a value inside a tuple, list, Row or dataclass may be); "
            "filter such records out, or use another key for them"
        )
    return nested_hash_code(key)


def nested_hash_code(value: object) -> int:
    """As `java_hash_code`, for a value inside a key: None is allowed and gives 0.

    Raises:
        UnstableKeyError: If the value is or holds one without a stable hash.
    """
    kind = type(value)
    hasher = _BY_CLASS.get(kind) or hasher_of_class(kind)
    if hasher is None:
        raise unstable(value)
    return hasher(value)


def _resolve(kind: type) -> Hasher | None:
    if issubclass(kind, enum.Flag):
        return _hash_flag
    if issubclass(kind, enum.Enum):
        return _hash_enum
    for ancestor in kind.__mro__:
        name = f"{ancestor.__module__}.{ancestor.__qualname__}"
        hasher = _BY_CLASS.get(ancestor) or _BY_CLASS_NAME.get(name)
        if hasher is not None:
            return hasher
    return None if compared_fields(kind) is None else _hash_fields


# mypy does not accept classes as hashable arguments of cached functions, so there are casts.
hasher_of_class = cast(
    "Callable[[type], Hasher | None]", functools.lru_cache(maxsize=1024)(_resolve)
)
"""The function that hashes instances of a class, or None if they have no stable hash."""


def unstable(value: object, why: str = "has no stable hash") -> UnstableKeyError:
    """The error for a value that cannot be, or be part of, a key."""
    return UnstableKeyError(
        f"{short_repr(value)} ({type(value).__name__}) {why}; "
        f"a key, and each value inside one, must be {_ALLOWED}"
    )


def signed(code: int) -> int:
    """The low 32 bits of an int, read as Java's int."""
    return ((code & MASK) ^ 0x80000000) - 0x80000000


def polynomial(units: Sequence[int], start: int = 0) -> int:
    """Java's 31 h + unit over all units, as a signed 32-bit int."""
    code = start
    # One mask per stride of units keeps the int at a few machine words.
    for begin in range(0, len(units), _STRIDE):
        for unit in units[begin : begin + _STRIDE]:
            code = 31 * code + unit
        code &= MASK
    return signed(code)


def hash_long(value: int) -> int:
    """`Long.hashCode`, of the low 64 bits of an int."""
    return signed(value ^ (value >> 32))


def hash_big_integer(value: int) -> int:
    """`BigInteger.hashCode`: over the 32-bit words of the magnitude, times the sign."""
    magnitude = abs(value)
    words = (magnitude.bit_length() + 31) // 32
    code = polynomial(struct.unpack(f">{words}I", magnitude.to_bytes(4 * words, "big")))
    return code if value >= 0 else signed(-code)


def hash_int(value: int) -> int:
    """`Long.hashCode` of what fits 64 bits, `BigInteger.hashCode` of the rest."""
    return hash_long(value) if LONG_MIN <= value <= LONG_MAX else hash_big_integer(value)


def hash_bool(value: bool) -> int:
    """`Boolean.hashCode`."""
    return 1231 if value else 1237


def hash_double(value: float) -> int:
    """`Double.hashCode`: every NaN is one value, 0.0 and -0.0 are two."""
    if value != value:  # noqa: PLR0124  (only a NaN differs from itself)
        return _NAN_CODE
    bits: int = _LONG.unpack(_DOUBLE.pack(value))[0]
    return hash_long(bits)


def utf16_units(text: str) -> Sequence[int]:
    """The `char`s of a string in Java."""
    if text.isascii():
        return text.encode("ascii")
    data = text.encode("utf-16-le", "surrogatepass")
    return struct.unpack(f"<{len(data) // 2}H", data)


def hash_str(value: str) -> int:
    """`String.hashCode`."""
    return polynomial(utf16_units(value))


def hash_bytes(value: bytes | bytearray) -> int:
    """`Arrays.hashCode(byte[])`: Java's bytes are signed."""
    return polynomial(memoryview(value).cast("b"), 1)


def hash_decimal(value: decimal.Decimal) -> int:
    """`BigDecimal.hashCode`: of the unscaled value and the scale.

    Raises:
        UnstableKeyError: If the value is infinite, not a number, or has a scale beyond 32 bits.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or signed(-exponent) != -exponent:
        raise unstable(value, "has no counterpart in Java's BigDecimal")
    unscaled = functools.reduce(lambda number, digit: 10 * number + digit, digits, 0)
    return signed(31 * hash_big_integer(-unscaled if sign else unscaled) - exponent)


def hash_date(value: dt.date) -> int:
    """`LocalDate.hashCode`."""
    year = value.year
    return signed((year & 0xFFFFF800) ^ ((year << 11) + (value.month << 6) + value.day))


def hash_time(value: dt.time) -> int:
    """`LocalTime.hashCode`.

    Raises:
        UnstableKeyError: If the time has a zone: Python calls 12:00+00:00 and 13:00+01:00 equal, Java not.
    """
    if value.utcoffset() is not None:
        raise unstable(value, "is a time of day with a zone")
    return _hash_time_of_day(value)


def _hash_time_of_day(value: dt.time | dt.datetime) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return hash_long(seconds * 1_000_000_000 + value.microsecond * 1_000)


def hash_local_date_time(value: dt.datetime) -> int:
    """`LocalDateTime.hashCode` of the fields, whatever the zone."""
    return hash_date(value) ^ _hash_time_of_day(value)


def hash_datetime(value: dt.datetime) -> int:
    """`LocalDateTime.hashCode` without a zone, `Instant.hashCode` with one."""
    return hash_local_date_time(value) if value.utcoffset() is None else hash_point_in_time(value)


def hash_point_in_time(value: dt.datetime) -> int:
    """`Instant.hashCode` of an aware datetime: one point in time is one key in every zone."""
    return hash_timedelta(value - _EPOCH)


def hash_timedelta(value: dt.timedelta) -> int:
    """`Duration.hashCode`."""
    return _hash_seconds_and_nanos(value.days * 86_400 + value.seconds, value.microseconds * 1_000)


def hash_instant(value: Any) -> int:
    """`Instant.hashCode` of our Instant."""
    return _hash_seconds_and_nanos(value.seconds, value.nanos)


def hash_duration(value: Any) -> int:
    """`Duration.hashCode` of our Duration."""
    return _hash_seconds_and_nanos(*divmod(value.nanos, 1_000_000_000))


def _hash_seconds_and_nanos(seconds: int, nanos: int) -> int:
    return signed(hash_long(seconds) + 51 * nanos)


def hash_uuid(value: uuid.UUID) -> int:
    """`UUID.hashCode`."""
    return hash_long((value.int >> 64) ^ (value.int & (2**64 - 1)))


def hash_tuple(value: Iterable[object]) -> int:
    """`Tuple1.hashCode` to `Tuple25.hashCode`, and the same rule for longer tuples."""
    return polynomial([nested_hash_code(element) for element in value])


def hash_list(value: Iterable[object]) -> int:
    """`List.hashCode`."""
    return polynomial([nested_hash_code(element) for element in value], 1)


def hash_row(value: Any) -> int:
    """`Row.hashCode` of a row with positions: of its kind and its values, never of field names."""
    fields = polynomial([_hash_in_row(field) for field in value], 1)
    return signed(31 * value.get_row_kind().value + fields)


def _hash_in_row(value: object) -> int:
    """The result of Flink's `RowUtils.deepHashCodeInternal`, which hashes all but lists as an array of one."""
    if value is None:
        return 0
    if isinstance(value, list):
        return polynomial([_hash_in_row(element) for element in value], 1)
    return 31 + nested_hash_code(value)


def _hash_enum(value: enum.Enum) -> int:
    return hash_str(value.name)


def _hash_flag(value: enum.Flag) -> int:
    return hash_int(value.value)


def _compared_fields(kind: type) -> tuple[str, ...] | None:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind) if field.compare)
    if any(
        f"{ancestor.__module__}.{ancestor.__qualname__}" == "pydantic.main.BaseModel"
        for ancestor in kind.__mro__
    ):
        return tuple(getattr(kind, "model_fields", ()))
    return None


compared_fields = cast(
    "Callable[[type], tuple[str, ...] | None]", functools.lru_cache(maxsize=1024)(_compared_fields)
)
"""The fields by which `==` compares instances of a dataclass or pydantic model; None of other classes."""


def compared_values(value: object) -> list[Any]:
    """The values of these fields.

    Raises:
        UnstableKeyError: A pydantic model has extra fields, which `==` compares, too.
    """
    if getattr(value, "model_extra", None):
        raise unstable(value, "has extra fields")
    return [getattr(value, name) for name in compared_fields(type(value)) or ()]


def _hash_fields(value: object) -> int:
    codes = [nested_hash_code(item) for item in compared_values(value)]
    return polynomial(codes, hash_str(type(value).__name__))


def plain_scalar(value: Any) -> Any:
    """The Python bool, int or float that equals a numpy scalar. Other values are returned unchanged."""
    return value.item() if hasher_of_class(type(value)) is _hash_numpy_scalar else value


def _hash_numpy_scalar(value: Any) -> int:
    return nested_hash_code(value.item())


def _refuse(value: object) -> int:
    raise unstable(value)


_BY_CLASS: Mapping[type, Hasher] = {
    type(None): lambda _: 0,
    bool: hash_bool,
    int: hash_int,
    float: hash_double,
    str: hash_str,
    bytes: hash_bytes,
    bytearray: hash_bytes,
    decimal.Decimal: hash_decimal,
    dt.datetime: hash_datetime,
    dt.date: hash_date,
    dt.time: hash_time,
    dt.timedelta: hash_timedelta,
    uuid.UUID: hash_uuid,
    tuple: hash_tuple,
    list: hash_list,
}

# By name, so that hashing a key does not import numpy. numpy.float64 is a subclass of float. longdouble and datetime64
# are not listed, because no single Python value equals them. timedelta64 is refused, because numpy derives it from
# integer.
_BY_CLASS_NAME: Mapping[str, Hasher] = {
    "opchain.runtime.types.row.Row": hash_row,
    "opchain.runtime.time.Instant": hash_instant,
    "opchain.runtime.time.Duration": hash_duration,
    "numpy.bool": _hash_numpy_scalar,
    "numpy.bool_": _hash_numpy_scalar,
    "numpy.integer": _hash_numpy_scalar,
    "numpy.timedelta64": _refuse,
    "numpy.float32": _hash_numpy_scalar,
    "numpy.float16": _hash_numpy_scalar,
}
