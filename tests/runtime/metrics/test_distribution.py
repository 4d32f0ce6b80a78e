from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.metrics.metric_types import Distribution, DistributionValue

numbers = st.lists(st.integers(-(10**6), 10**6))


def of(values: list[int]) -> DistributionValue:
    distribution = Distribution()
    for value in values:
        distribution.update(value)
    return distribution.snapshot()


@given(numbers)
def test_a_distribution_keeps_count_sum_minimum_and_maximum(values: list[int]) -> None:
    assert of(values) == DistributionValue(
        len(values), sum(values), min(values, default=None), max(values, default=None)
    )


@given(numbers, numbers, numbers)
def test_merging_equals_updating_one_distribution_with_all_values(
    a: list[int], b: list[int], c: list[int]
) -> None:
    assert of(a).merged(of(b)).merged(of(c)) == of(a).merged(of(b).merged(of(c))) == of(a + b + c)
    assert of(b).merged(of(a)) == of(a + b)


def test_the_mean_of_an_empty_distribution_is_none() -> None:
    assert of([]).mean is None
    assert of([1, 2]).mean == 1.5


def test_a_value_is_converted_to_plain_values_and_pickled() -> None:
    value = of([3, 5])
    assert value.as_plain() == {"count": 2, "sum": 8, "min": 3, "max": 5, "mean": 4.0}
    assert pickle.loads(pickle.dumps(value)) == value


def test_floats_are_accepted() -> None:
    assert of([0.5, -1.5]).minimum == -1.5  # type: ignore[list-item]
    assert of([0.5, -1.5]).sum == pytest.approx(-1.0)  # type: ignore[list-item]
