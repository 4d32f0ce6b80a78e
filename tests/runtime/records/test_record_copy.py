from __future__ import annotations

import datetime as dt
import decimal
import enum
import threading
from collections import Counter, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

from opchain.common import Row
from opchain.runtime.records.record_copy import IMMUTABLE, own_copy

Point = namedtuple("Point", "x y")  # noqa: PYI024 - users write these


class Colour(enum.Enum):
    RED = 1


@dataclass
class Account:
    owner: str
    tags: list[str]


@dataclass(frozen=True)
class Place:
    country: str
    parts: Any = ()


@dataclass(frozen=True, slots=True)
class Point3(Place):
    z: int = 0


class Named(str):
    """A text with an attribute, which is mutable."""

    __slots__ = ("extra",)


@pytest.mark.parametrize(
    "value",
    [
        *(1, 2**80, "a", 1.5, True, b"x", None, 1j, range(3)),
        *(decimal.Decimal("1.5"), dt.date(2024, 1, 1), dt.timedelta(1), dt.timezone.utc),
        *((), (1, "a"), (1, (2, (3, None)))),
        *(Colour.RED, (1, Colour.RED), len, int, Account),
        *(Place("a"), (1, Place("a", Place("b"))), Point3("a", (Colour.RED,), 3)),
    ],
    ids=repr,
)
def test_an_immutable_value_is_not_copied(value: Any) -> None:
    copied = own_copy(value)
    assert copied is value or (copied == value and isinstance(value, tuple))


@pytest.mark.parametrize(
    "value",
    [
        *([1], {"a": 1}, {1}, bytearray(b"x")),
        *(Account("a", ["b"]), Point(1, [2]), Row(1, [2])),
        *((1, [2]), (1, (2, [3])), [[1], [2]]),
        *(Place("a", [1]), Point3("a", [1]), Point3("a", Account("a", []))),
        *({"a": {"b": [Account("a", [])]}}, [Row(1, {1: {2}})], {(1, Colour.RED): [1]}),
        *({1: {Place("a")}}, {1: Counter("aab")}, Account("a", [Row(Place("a", [1]))])),  # type: ignore[list-item]
    ],
    ids=repr,
)
def test_a_mutable_value_is_copied_deeply(value: Any) -> None:
    copied = own_copy(value)
    assert copied == value
    assert type(copied) is type(value)
    assert copied is not value


def mutable_parts(value: Any) -> list[int]:
    """The identities of the mutable parts of a value."""
    if isinstance(value, dict):
        inner = [*value, *value.values()]
    elif isinstance(value, (list, tuple, set, Row)):
        inner = list(value)
    else:
        names = ("owner", "tags", "country", "parts", "z")
        inner = [getattr(value, name) for name in names if hasattr(value, name)]
    can_change = isinstance(value, (dict, list, set, Row, Account))
    return [id(value)] * can_change + [found for item in inner for found in mutable_parts(item)]


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"b": [Account("a", ["b"])]}, "c": [Row(1, {1: {2}})]},
        [Place("a", [1]), Point3("a", Account("a", [])), (1, [Counter("a")])],
        {Place("a", ({1: 2}.get(1),)): [Place("a", (Row(1), [2]))]},
    ],
)
def test_a_copy_shares_no_mutable_part_with_the_record(value: Any) -> None:
    copied = own_copy(value)
    assert copied == value
    assert mutable_parts(value)
    assert not set(mutable_parts(value)).intersection(mutable_parts(copied))


def test_cyclic_values_are_copied() -> None:
    row = Row(1, {"tags": []})
    row[1]["tags"].append((row, 2))
    place = Place("a", "b")
    object.__setattr__(place, "parts", place)
    row[0] = place
    copied = own_copy(row)
    assert copied[1]["tags"][0][0] is copied
    assert copied[0].parts is copied[0]
    assert copied[0] is not place


def test_copies_are_independent() -> None:
    inner = [1]
    copied = own_copy((inner, {"k": inner}))
    inner.append(2)
    assert copied == ([1], {"k": [1]})
    assert copied[0] is copied[1]["k"]


def test_an_instance_of_a_subclass_of_an_immutable_type_is_copied() -> None:
    named = Named("a")
    named.extra = [1]
    assert type(named) not in IMMUTABLE
    copied = own_copy(named)
    assert copied.extra == [1]
    assert copied.extra is not named.extra


def test_an_object_that_cannot_be_copied_is_used_itself() -> None:
    lock = threading.Lock()
    assert own_copy(lock) is lock
    held = (lock, 1)
    assert own_copy(held) is held


class FailsToCopy:
    def __deepcopy__(self, memo: Any) -> Any:
        raise ValueError("no")


def test_an_error_of_the_records_own_deepcopy_is_raised() -> None:
    with pytest.raises(ValueError, match="no"):
        own_copy(FailsToCopy())
