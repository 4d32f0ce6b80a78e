from __future__ import annotations

import datetime as dt
import enum
import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from opchain.runtime.errors import KeyTypeError
from opchain.runtime.state.keys.java_hash import java_hash_code
from opchain.runtime.state.keys.key_hashers import (
    NAMED_HASHERS,
    hasher_named,
    list_of,
    row_of,
    tuple_of,
)
from opchain.runtime.time import Duration, Instant
from opchain.runtime.types.row import Row, RowKind

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
LOCAL_EPOCH = EPOCH.replace(tzinfo=None)
STRING, INTEGER, LONG = map(hasher_named, ("String", "Integer", "Long"))


class Level(enum.IntEnum):
    LOW = 1


CODES = [
    ("Boolean", True, 1231),
    ("Boolean", np.bool_(False), 1237),
    ("Byte", -128, -128),
    ("Short", -32768, -32768),
    ("Integer", -1, -1),
    ("Integer", True, 1),
    ("Integer", Level.LOW, 1),
    ("Integer", np.int8(-1), -1),
    ("Integer", 2**31 - 1, 2**31 - 1),
    ("Long", -1, 0),
    ("Long", -(2**63), -(2**31)),
    ("BigInteger", -1, -1),
    ("BigInteger", 2**32, 31),
    ("BigInteger", -(2**63), -(2**31)),
    ("Float", 1.0, 1065353216),
    ("Float", 1, 1065353216),
    ("Float", 0.1, 1036831949),
    ("Float", -0.0, -(2**31)),
    ("Float", math.nan, 2143289344),
    ("Float", math.inf, 2139095040),
    ("Float", np.float32(0.1), 1036831949),
    ("Double", 1.0, 1072693248),
    ("Double", 1, 1072693248),
    ("Double", math.nan, 2146959360),
    ("BigDecimal", Decimal("1.00"), 3102),
    ("Character", "\ud83d", 55357),
    ("Character", "a", 97),
    ("String", "hello", 99162322),
    ("byte[]", b"\xff", 30),
    ("byte[]", bytearray(b"\xff"), 30),
    ("LocalDate", dt.date(2024, 2, 29), 4145309),
    ("LocalTime", dt.time(12), 1218946890),
    ("LocalDateTime", LOCAL_EPOCH, 4034625),
    ("Instant", EPOCH, 0),
    ("Instant", Instant(-1, 999999000), -539658552),
    ("Duration", dt.timedelta(microseconds=-1), -539658552),
    ("Duration", Duration(-1000), -539658552),
    ("UUID", UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479"), -1156425726),
    ("Date", dt.date(2024, 2, 29), 4145309),
    ("Time", dt.time(12), 1218946890),
    ("Timestamp", LOCAL_EPOCH, 4034625),
    ("Timestamp", EPOCH, 0),
    ("Object", -1, 0),
]

MISMATCHES = [
    ("Boolean", 1, "an instance of bool"),
    ("Byte", 128, "an int from -128 to 127"),
    ("Byte", -129, "an int from -128 to 127"),
    ("Short", 32768, "an int from -32768 to 32767"),
    ("Integer", 2**31, "an int from -2147483648 to 2147483647"),
    ("Integer", "1", "an int from"),
    ("Integer", "1", "an int from"),
    ("Long", 2**63, "an int from -9223372036854775808 to 9223372036854775807"),
    ("BigInteger", 1.0, "an int"),
    ("Float", "1", "a float or int"),
    ("Float", 1e39, "a number in the range of a 32-bit float"),
    ("Double", Decimal(1), "a float or int"),
    ("Double", 10**400, "a number in the range of a double"),
    ("BigDecimal", 1.0, "an instance of Decimal"),
    ("Character", "", "a str of one UTF-16 unit"),
    ("Character", "\U0001f600", "a str of one UTF-16 unit"),
    ("Character", 97, "a str of one UTF-16 unit"),
    ("String", b"a", "an instance of str"),
    ("byte[]", "a", "bytes or a bytearray"),
    ("LocalDate", "2024-02-29", "an instance of date"),
    ("LocalTime", LOCAL_EPOCH, "an instance of time"),
    ("LocalDateTime", dt.date(1970, 1, 1), "an instance of datetime"),
    ("Instant", LOCAL_EPOCH, "an Instant or a datetime with a zone"),
    ("Duration", 5, "a Duration or timedelta"),
    ("UUID", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "an instance of UUID"),
    ("Date", 1, "an instance of date"),
    ("Time", 1, "an instance of time"),
    ("Timestamp", 1, "an instance of datetime"),
]


@pytest.mark.parametrize(("name", "key", "code"), CODES)
def test_hash_codes_of_declared_types_are_those_of_java(name: str, key: Any, code: int) -> None:
    assert hasher_named(name)(key) == code


@pytest.mark.parametrize(("name", "key", "expected"), MISMATCHES)
def test_a_key_that_its_declared_type_cannot_hold_is_refused(
    name: str, key: Any, expected: str
) -> None:
    with pytest.raises(KeyTypeError) as caught:
        hasher_named(name)(key)
    text = str(caught.value)
    assert f"is not a value of the key type {name}: expected {expected}" in text
    assert f"({type(key).__name__})" in text


def test_every_named_hasher_is_tested() -> None:
    assert {name for name, *_ in CODES} == set(NAMED_HASHERS)
    assert {name for name, *_ in MISMATCHES} == set(NAMED_HASHERS) - {"Object"}


@pytest.mark.parametrize("name", NAMED_HASHERS)
def test_none_is_refused_as_a_key_of_any_type(name: str) -> None:
    with pytest.raises(KeyTypeError):
        hasher_named(name)(None)


def test_the_error_about_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"unknown key hasher 'int'; the names are Boolean, Byte, "
    ):
        hasher_named("int")


@pytest.mark.parametrize(
    ("hasher", "key", "code"),
    [
        (tuple_of(STRING, INTEGER), ("a", -1), 97 * 31 - 1),
        (tuple_of(STRING, LONG), ("a", -1), 97 * 31),
        (tuple_of(STRING, INTEGER), (None, None), 0),
        (tuple_of(), (), 0),
        (tuple_of(tuple_of(INTEGER)), ((-1,),), -1),
        (list_of(INTEGER), [-1, None], (31 - 1) * 31),
        (list_of(STRING), [], 1),
    ],
)
def test_tuples_and_lists_are_hashed_as_in_java(hasher: Any, key: Any, code: int) -> None:
    assert hasher(key) == code


@pytest.mark.parametrize(
    "row",
    [
        Row("a", -1, None),
        Row(None, None, ["b", None]),
        Row.of_kind(RowKind.DELETE, "a", 1, []),
        Row(x="a", y=1, z=["b"]),
    ],
)
def test_rows_of_python_types_hash_as_without_a_declared_type(row: Row) -> None:
    assert row_of(STRING, LONG, list_of(STRING))(row) == java_hash_code(row)


def test_rows_hash_their_fields_by_declared_type() -> None:
    inner = row_of(INTEGER)
    # An INSERT row is 1, then 31 h + field; a field adds 31 more in a row, but not in a list.
    assert inner(Row(-1)) == 31 + 31 - 1
    assert row_of(inner)(Row(Row(-1))) == 31 + 31 + 61
    assert row_of(list_of(INTEGER))(Row([-1])) == 31 + (31 + 31 - 1)
    assert row_of(tuple_of(INTEGER))(Row((-1,))) == 31 + 31 - 1


@pytest.mark.parametrize(
    ("hasher", "key", "expected"),
    [
        (tuple_of(STRING), ("a", "b"), "Tuple: expected a tuple of 1 fields"),
        (tuple_of(STRING), ["a"], "Tuple: expected a tuple of 1 fields"),
        (tuple_of(STRING), (1,), "String: expected an instance of str"),
        (list_of(STRING), ("a",), "List: expected a list"),
        (list_of(STRING), [1], "String: expected an instance of str"),
        (row_of(STRING), ("a",), "Row: expected a Row of 1 fields"),
        (row_of(STRING), Row("a", "b"), "Row: expected a Row of 1 fields"),
        (row_of(list_of(STRING)), Row("a"), "List: expected a list"),
    ],
)
def test_containers_of_another_shape_are_refused(hasher: Any, key: Any, expected: str) -> None:
    with pytest.raises(KeyTypeError, match=expected):
        hasher(key)


def test_all_nan_values_have_one_hash_code() -> None:
    other = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
    assert hasher_named("Float")(other) == 2143289344
