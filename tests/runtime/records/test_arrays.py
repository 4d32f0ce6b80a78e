"""Sorting by several columns gives the same order with and without numpy."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.records import arrays

INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(0, 2**17)


@given(st.lists(st.tuples(INTS, INTS, st.integers(0, 3)), min_size=1, max_size=60), st.booleans())
def test_stable_order_sorts_by_the_last_column_first(rows: list[Any], as_arrays: bool) -> None:
    first, second, third = ([row[place] for row in rows] for place in range(3))
    columns: tuple[Any, ...] = (first, second, third)
    if as_arrays:
        columns = (array("q", first), array("q", second), bytearray(third))
    expected = sorted(range(len(rows)), key=lambda place: rows[place][::-1])
    order = arrays.stable_order(*columns)
    assert list(order) == expected
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrays, "_numpy", lambda: None)
        assert arrays.stable_order(*columns) == expected
    for column, entries in zip(columns, (first, second, third), strict=True):
        taken = arrays.entries_at(column, order)
        assert list(taken) == [entries[place] for place in expected]
        assert {type(entry) for entry in taken} == {int}
        assert list(arrays.entries_at(column, expected[:1])) == [entries[expected[0]]]


def test_numbers_beyond_64_bits_are_sorted_too() -> None:
    assert arrays.stable_order([2**70, -(2**70), 2**70]) == [1, 0, 2]


def test_entries_at_reorders_lists_and_arrays() -> None:
    order = arrays.stable_order([1, 0])
    assert arrays.entries_at(["a", None], order) == [None, "a"]
    assert arrays.entries_at(array("d", [1.5, -0.0]), order) == [-0.0, 1.5]
