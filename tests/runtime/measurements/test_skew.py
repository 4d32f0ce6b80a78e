from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.measurements.vertex_metrics import skew


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([7], 1.0), ([0], 1.0), ([0, 0, 0], 1.0), ([4, 4], 1.0), ([6, 2], 1.5), ([0, 0, 9], 3.0)],
)
def test_skew_is_the_largest_share_relative_to_an_even_one(
    counts: list[int], expected: float
) -> None:
    assert skew(counts) == expected


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_skew_is_between_1_and_the_number_of_subtasks(counts: list[int]) -> None:
    assert 1.0 <= skew(counts) <= len(counts)
