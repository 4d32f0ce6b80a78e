from __future__ import annotations

import math
import pickle
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.runtime.metrics import histogram
from opchain.runtime.metrics.histogram import MOST_EXACT, Histogram, HistogramValue

QUANTILES = (0, 0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 1)

few = st.lists(st.integers(-50, 50), max_size=60)
many = st.builds(
    lambda start, step, count: [start + step * n for n in range(count)],
    st.integers(-(10**6), 10**6),
    st.integers(-999, 999),
    st.integers(0, 2 * MOST_EXACT),
)
values_of_any_number = st.one_of(few, many)


def of(values: list[float] | list[int]) -> HistogramValue:
    taken = Histogram()
    for value in values:
        taken.update(value)
    return taken.snapshot()


def at_rank(values: list[int], quantile: float) -> int:
    return sorted(values)[max(1, math.ceil(quantile * len(values))) - 1]


@given(st.lists(st.integers(-50, 50), min_size=1))
def test_few_different_values_are_counted_exactly(values: list[int]) -> None:
    taken = of(values)
    assert (taken.exact, taken.buckets) == (Counter(values), {})
    assert (taken.count, taken.sum) == (len(values), sum(values))
    assert (taken.minimum, taken.maximum) == (min(values), max(values))
    for quantile in QUANTILES:
        assert taken.quantile(quantile) == at_rank(values, quantile)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=MOST_EXACT + 1, unique=True, max_size=2000))
def test_quantiles_of_many_different_values_are_exact_to_one_percent(values: list[int]) -> None:
    taken = of(values)
    assert taken.exact == {}
    assert sum(taken.buckets.values()) == taken.count == len(values)
    for quantile in QUANTILES:
        assert taken.quantile(quantile) == pytest.approx(at_rank(values, quantile), rel=0.0101)


@settings(max_examples=60)
@given(values_of_any_number, values_of_any_number, values_of_any_number)
def test_merging_equals_updating_one_histogram_with_all_values(
    a: list[int], b: list[int], c: list[int]
) -> None:
    together = of(a + b + c)
    assert of(a).merged(of(b)).merged(of(c)) == together
    assert of(a).merged(of(b).merged(of(c))) == together
    assert of(c).merged(of(a)).merged(of(b)) == together


def test_the_memory_of_a_histogram_is_bounded() -> None:
    taken = Histogram()
    for number in range(200_000):
        taken.update(number * 1e3 + 0.5)
    value = taken.get_statistics()
    assert taken.get_count() == 200_000
    assert len(value.buckets) < 1000
    assert len(pickle.dumps(value)) < 20_000


@pytest.mark.parametrize("extreme", [sys.float_info.max, sys.float_info.min, 5e-324])
def test_the_extremes_of_floats_have_buckets(extreme: float) -> None:
    taken = of([float(n) for n in range(1, MOST_EXACT + 2)] + [extreme, -extreme])
    assert taken.buckets
    assert taken.quantile(0) == -extreme
    assert taken.quantile(1) == max(extreme, MOST_EXACT + 1)
    assert histogram._middle(histogram._bucket(extreme)) == pytest.approx(extreme, rel=0.011)


def test_a_snapshot_does_not_change_with_its_histogram() -> None:
    taken = Histogram()
    taken.update(1)
    before = taken.snapshot()
    taken.update(2)
    assert before == of([1])


def test_an_empty_histogram_has_no_quantiles_and_no_mean() -> None:
    assert of([]).quantile(0.5) is None
    assert of([]).mean is None


def test_a_value_is_converted_to_plain_values_and_pickled() -> None:
    value = of(list(range(101)))
    assert value.as_plain() == {
        "count": 101,
        "min": 0,
        "max": 100,
        "mean": 50.0,
        "p50": 50,
        "p95": 95,
        "p99": 99,
    }
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize("quantile", [-0.1, 1.1, math.nan])
def test_a_quantile_must_be_between_0_and_1(quantile: float) -> None:
    with pytest.raises(ValueError, match="it must be between 0 and 1"):
        of([1]).quantile(quantile)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_finite_numbers_are_accepted(value: float) -> None:
    with pytest.raises(ValueError, match="takes finite numbers, not"):
        Histogram().update(value)
