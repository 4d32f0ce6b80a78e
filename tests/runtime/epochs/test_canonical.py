from __future__ import annotations

import datetime as dt
import decimal
import enum
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.common import Row
from opchain.runtime.epochs.recording import canonical


@dataclass
class Point:
    x: int
    y: Any


class Colour(enum.Enum):
    RED = 1


PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
        | st.frozensets(PLAIN)
        | st.builds(Point, st.integers(), inner)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_a_copy_has_the_same_canonical_bytes(value: Any) -> None:
    assert canonical(pickle.loads(pickle.dumps(value))) == canonical(value)


@given(VALUES, VALUES)
def test_values_with_the_same_canonical_bytes_are_equal(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other) or one == other


@given(st.lists(st.integers() | st.text(), unique=True))
def test_the_order_of_a_set_does_not_matter(values: list[Any]) -> None:
    backwards = values[::-1]
    assert canonical(set(values)) == canonical(set(backwards))


def test_the_identity_of_objects_does_not_matter() -> None:
    text = "ab" * 3
    assert canonical([text, text]) == canonical([text, "".join(["ab"] * 3)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("a", b"a"),
        ((1,), [1]),
        ({1}, frozenset({1})),
        ([[1], 2], [[1, 2]]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Row(1), Row(2)),
        (Row(a=1), Row(1)),
        (dt.date(2026, 1, 1), dt.datetime(2026, 1, 1)),  # noqa: DTZ001 - compared with one that has a zone
        (decimal.Decimal(1), decimal.Decimal("1.0")),
        (Point(1, 2), Point(2, 1)),
        (Colour.RED, 1),
        (len, max),
    ],
)
def test_different_values_have_different_canonical_bytes(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)


def test_a_value_may_contain_itself() -> None:
    def ring(length: int) -> list[Any]:
        start: list[Any] = []
        end = start
        for _ in range(length - 1):
            end.append([])
            end = end[0]
        end.append(start)
        return start

    assert canonical(ring(2)) == canonical(ring(2)) != canonical(ring(3))
