"""Expected hash codes were printed by JDK 17 and 25 and by the classes of Flink 2.3."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
import struct
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pydantic
import pytest

from opchain.runtime.errors import UnstableKeyError
from opchain.runtime.state.keys.java_hash import java_hash_code, nested_hash_code, signed
from opchain.runtime.time import Duration, Instant
from opchain.runtime.types.row import Row, RowKind

UTC = dt.timezone.utc


def local(*fields: int) -> dt.datetime:
    return dt.datetime(*fields)  # type: ignore[arg-type]  # noqa: DTZ001 - LocalDateTime


def utc(*fields: int) -> dt.datetime:
    return local(*fields).replace(tzinfo=UTC)


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Text(str, enum.Enum):
    LOW = "x"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: str
    y: int


class Celsius(float):
    pass


@dataclasses.dataclass(frozen=True)
class Place:
    name: str
    zone: int | None
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class Spot(Place):
    pass


SCALARS = [
    # Long, and BigInteger beyond it
    (0, 0),
    (1, 1),
    (-1, 0),
    (-2, 1),
    (2**32, 1),
    (2**63 - 1, -(2**31)),
    (-(2**63), -(2**31)),
    (2**63, -2147483648),
    (-(2**63) - 1, 2147483647),
    (2**64 - 1, -32),
    (2**64, 961),
    (-(2**64), -961),
    (2**128 - 1, -30784),
    (-(2**128), -923521),
    (123456789012345678901234567890, 1915528825),
    # Boolean
    (True, 1231),
    (False, 1237),
    # Double
    (0.0, 0),
    (-0.0, -(2**31)),
    (1.0, 1072693248),
    (math.inf, 2146435072),
    (-math.inf, -1048576),
    (math.nan, 2146959360),
    (struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0], 2146959360),
    # String
    ("", 0),
    ("hello", 99162322),
    ("polygenelubricants", -2147483648),
    ("caf\u00e9", 3045921),
    ("\ud83d", 55357),
    ("\U0001f600", 55357 * 31 + 56832),
    # byte[]
    (b"", 1),
    (b"\x00", 31),
    (b"\x01", 32),
    (b"\xff", 30),
    (b"\x00\x00", 961),
    (b"\x7f\x80\x41", 147935),
    (b"hello", 127791473),
    (bytearray(b"hello"), 127791473),
    # BigDecimal
    (Decimal(0), 0),
    (Decimal("-0"), 0),
    (Decimal("0.0"), 1),
    (Decimal("0.00"), 2),
    (Decimal(1), 31),
    (Decimal("1.0"), 311),
    (Decimal("1.00"), 3102),
    (Decimal("-1.5"), -464),
    (Decimal("-0.1"), -30),
    (Decimal("1E+3"), 28),
    (Decimal("1E-10"), 41),
    (Decimal("42E5"), 1297),
    (Decimal("123456789.123456789"), 1538816031),
    (Decimal(2**63 - 1), 2147482656),
    (Decimal(-(2**63)), -2147483648),
    (Decimal(-(2**63) + 1), -2147482656),
    (Decimal("9223372036854775808.1"), 148987),
    (Decimal("123456789012345678901234567890.12345"), 1497695748),
    (Decimal("-123456789012345678901234567890E-40"), 748148609),
    # LocalDate
    (dt.date(1970, 1, 1), 4034625),
    (dt.date(2024, 2, 29), 4145309),
    (dt.date(1, 1, 1), 2113),
    (dt.date(9999, 12, 31), 20470559),
    (dt.date(1969, 12, 31), 4033311),
    (dt.date(2048, 7, 4), 4196804),
    # LocalTime
    (dt.time(0), 0),
    (dt.time(12), 1218946890),
    (dt.time(23, 59, 59, 999999), -1857113460),
    (dt.time(1, 2, 3, 4), -736641342),
    (dt.time(0, 0, 0, 1), 1000),
    # LocalDateTime
    (local(1970, 1, 1), 4034625),
    (local(2024, 2, 29, 13, 14, 15, 161718), -1799155910),
    (local(1, 1, 1), 2113),
    (local(9999, 12, 31, 23, 59, 59, 999999), -1871255149),
    (local(1969, 12, 31, 23, 59, 59, 999999), -1854719597),
    # Instant
    (utc(1970, 1, 1), 0),
    (utc(2024, 2, 29, 13, 14, 15, 161718), 1366895863),
    (Instant(1709212455, 161718000), 1366895863),
    (utc(1, 1, 1), 2006054641),
    (utc(9999, 12, 31, 23, 59, 59, 999999), -540428275),
    (utc(1969, 12, 31, 23, 59, 59, 999999), -539658552),
    (Instant(-1, 999999000), -539658552),
    # Duration
    (dt.timedelta(0), 0),
    (dt.timedelta(microseconds=1), 51000),
    (dt.timedelta(microseconds=-1), -539658552),
    (Duration(-1000), -539658552),
    (dt.timedelta(seconds=-1), 0),
    (dt.timedelta(days=400, microseconds=5), 34815000),
    (dt.timedelta.max, 1898194995),
    (dt.timedelta.min, -1857167125),
    # UUID
    (UUID("00000000-0000-0000-0000-000000000000"), 0),
    (UUID("12345678-1234-5678-1234-567812345678"), 0),
    (UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479"), -1156425726),
]

CONTAINERS = [
    ((), 0),
    (("a",), 97),
    ((None,), 0),
    (("a", 1), 3008),
    ((None, None), 0),
    ((("a", 1), "b"), 93346),
    ((Row("a"), 1), 4930),
    ([], 1),
    (["a", None, "c"], 123107),
    ([[1]], 63),
    ([Row("a"), None], 5890),
    (Row(), 1),
    (Row("a", 1), 4961),
    (Row(None), 31),
    (Row(None, None), 961),
    (Row.of_kind(RowKind.INSERT, "a", 1), 4961),
    (Row.of_kind(RowKind.UPDATE_BEFORE, "a", 1), 4992),
    (Row.of_kind(RowKind.UPDATE_AFTER, "a", 1), 5023),
    (Row.of_kind(RowKind.DELETE, "a", 1), 5054),
    (Row(["a", None, "b"]), 152959),
    (Row([]), 32),
    (Row(Row("a"), 1), 6883),
    (Row(Row.of_kind(RowKind.DELETE, "a"), 1), 9766),
    (Row(("a", 1)), 3070),
    (Row((["a"], 1)), 4031),
    (Row(b"\x01\x02"), 1056),
    (Row(True, 1.5), 1073257650),
    (Row([[1]]), 125),
    (Row([("a",), Row("b")]), 5151),
    (Row(Decimal("1.50")), 4714),
    (Row("x", 1), 5674),
    (Row(b=1, a="x"), java_hash_code(Row(1, "x"))),
]

OUR_OWN = [
    (Color.RED, java_hash_code("RED")),
    (Level.LOW, java_hash_code("LOW")),
    (Text.LOW, java_hash_code("LOW")),
    (Access.READ | Access.WRITE, 3),
    (Point("a", 1), 3008),
    (Celsius(1.0), 1072693248),
    (Place("x", None), signed(java_hash_code("Place") * 31 * 31 + java_hash_code("x") * 31)),
    (Place("x", None, note="y"), java_hash_code(Place("x", None))),
    (np.int64(-1), 0),
    (np.int8(-1), 0),
    (np.uint64(2**64 - 1), -32),
    (np.bool_(True), 1231),
    (np.float64(1.0), 1072693248),
    (np.float32(1.5), java_hash_code(1.5)),
    (np.str_("hello"), 99162322),
    (np.bytes_(b"hello"), 127791473),
]


@pytest.mark.parametrize(("key", "code"), [*SCALARS, *CONTAINERS, *OUR_OWN], ids=repr)
def test_hash_codes_are_those_of_java(key: Any, code: int) -> None:
    assert java_hash_code(key) == code


def test_a_dataclass_hashes_its_compared_fields_and_its_class_name() -> None:
    codes = [java_hash_code(key) for key in (Place("x", 1), Place("x", 2), Place("y", 1))]
    assert len({*codes, java_hash_code(Spot("x", 1))}) == 4


def test_one_instant_has_one_hash_code_in_every_zone() -> None:
    east = dt.timezone(dt.timedelta(hours=5, minutes=45))
    point = utc(2024, 2, 29, 13, 14, 15, 161718)
    assert java_hash_code(point.astimezone(east)) == java_hash_code(point)


class SummerTimeEnds(dt.tzinfo):
    """A zone whose offset depends on `fold` only."""

    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta | None:
        return None if when is None else dt.timedelta(hours=1 if when.fold else 2)

    def dst(self, when: dt.datetime | None) -> dt.timedelta | None:
        return None

    def tzname(self, when: dt.datetime | None) -> str | None:
        return None


def test_the_two_instants_of_a_repeated_hour_are_two_keys() -> None:
    first = dt.datetime(2024, 10, 27, 2, 30, tzinfo=SummerTimeEnds())
    second = first.replace(fold=1)
    assert java_hash_code(first) == java_hash_code(utc(2024, 10, 27, 0, 30))
    assert java_hash_code(second) == java_hash_code(utc(2024, 10, 27, 1, 30))


def test_a_time_whose_zone_returns_no_offset_is_a_local_time() -> None:
    assert java_hash_code(dt.time(12, tzinfo=SummerTimeEnds())) == 1218946890


def test_a_decimal_with_more_digits_than_int_can_parse_is_hashed() -> None:
    assert java_hash_code(Decimal("9" * 5000)) == signed(31 * java_hash_code(10**5000 - 1))


def test_none_is_allowed_only_inside_a_key() -> None:
    assert nested_hash_code(None) == 0
    with pytest.raises(UnstableKeyError, match="a key must not be None"):
        java_hash_code(None)


@pytest.mark.parametrize(
    "key",
    [
        object(),
        {1},
        frozenset({1}),
        {1: 2},
        (value for value in [1]),
        1j,
        memoryview(b"a"),
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1E-3000000000"),
        dt.time(12, tzinfo=UTC),
        np.timedelta64(1, "s"),
        np.datetime64(1, "s"),
        np.longdouble(1),
        np.array([1]),
        int,
        Place,
    ],
    ids=lambda key: type(key).__name__,
)
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda key: key,
        lambda key: ("a", [key]),
        lambda key: Row("a", [key]),
        lambda key: Place(key, None),
    ],
    ids=["single", "in tuple", "in row", "in dataclass"],
)
def test_a_key_without_a_stable_hash_is_refused(key: Any, wrapped: Any) -> None:
    with pytest.raises(UnstableKeyError, match="must be an int, bool, float, str, bytes, Decimal"):
        java_hash_code(wrapped(key))


def test_the_error_shows_type_and_truncated_value() -> None:
    with pytest.raises(UnstableKeyError) as caught:
        java_hash_code({"x" * 100})
    expected = f"{{'{'x' * 75}... (set) has no stable hash; a key, "
    assert str(caught.value).startswith(expected)


class House(pydantic.BaseModel):
    name: str
    number: int


class OpenHouse(House, extra="allow"):
    pass


def test_a_pydantic_model_hashes_as_a_dataclass_of_its_fields() -> None:
    twin = dataclasses.make_dataclass("House", ["name", "number"])
    assert java_hash_code(House(name="a", number=1)) == java_hash_code(twin("a", 1))
    assert java_hash_code((House(name="a", number=1),)) == java_hash_code((twin("a", 1),))


def test_a_pydantic_model_with_extra_fields_is_refused_as_a_key() -> None:
    assert java_hash_code(OpenHouse(name="a", number=1))
    with pytest.raises(UnstableKeyError, match="has extra fields"):
        java_hash_code(OpenHouse(name="a", number=1, more=2))  # type: ignore[call-arg]
