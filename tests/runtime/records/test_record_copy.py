from __future__ import annotations

import datetime as dt
import decimal
import enum
import threading
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

from opchain.common import Row
from opchain.runtime.records.record_copy import IMMUTABLE, own_copy

Point = namedtuple("Point", "x y")  # noqa: PYI024 - what users write


class Colour(enum.Enum):
    RED = 1


@dataclass
class Account:
    owner: str
    tags: list[str]


class Named(str):
    """A text with an attribute, which may change."""

    __slots__ = ("extra",)


@pytest.mark.parametrize(
    "value",
    [
        *(1, 2**80, "a", 1.5, True, b"x", None, 1j, range(3)),
        *(decimal.Decimal("1.5"), dt.date(2024, 1, 1), dt.timedelta(1), dt.timezone.utc),
        *((), (1, "a"), (1, (2, (3, None)))),
        *(Colour.RED, (1, Colour.RED), len, int, Account),
    ],
    ids=repr,
)
def test_what_cannot_change_is_the_same_object(value: Any) -> None:
    copied = own_copy(value)
    assert copied is value or (copied == value and isinstance(value, tuple))


@pytest.mark.parametrize(
    "value",
    [
        *([1], {"a": 1}, {1}, bytearray(b"x")),
        *(Account("a", ["b"]), Point(1, [2]), Row(1, [2])),
        *((1, [2]), (1, (2, [3])), [[1], [2]]),
    ],
    ids=repr,
)
def test_what_can_change_is_copied_deeply(value: Any) -> None:
    copied = own_copy(value)
    assert copied == value
    assert type(copied) is type(value)
    assert copied is not value


def test_copies_share_nothing() -> None:
    inner = [1]
    copied = own_copy((inner, {"k": inner}))
    inner.append(2)
    assert copied == ([1], {"k": [1]})
    assert copied[0] is copied[1]["k"]


def test_a_subclass_of_a_frozen_type_may_change() -> None:
    named = Named("a")
    named.extra = [1]
    assert type(named) not in IMMUTABLE
    copied = own_copy(named)
    assert copied.extra == [1]
    assert copied.extra is not named.extra


def test_what_cannot_be_copied_stays() -> None:
    lock = threading.Lock()
    assert own_copy(lock) is lock
    held = (lock, 1)
    assert own_copy(held) is held


class FailsToCopy:
    def __deepcopy__(self, memo: Any) -> Any:
        raise ValueError("no")


def test_a_failure_of_the_record_s_own_is_raised() -> None:
    with pytest.raises(ValueError, match="no"):
        own_copy(FailsToCopy())
