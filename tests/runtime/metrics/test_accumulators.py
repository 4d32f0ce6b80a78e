from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.metrics import accumulators as kinds

INTEGERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=30)

VALUE_OF: dict[str, Any] = {
    "IntCounter": sum,
    "LongCounter": sum,
    "DoubleCounter": lambda values: float(sum(values)),
    "AverageAccumulator": lambda values: sum(values) / len(values) if values else 0.0,
    "Histogram": lambda values: {value: values.count(value) for value in sorted(set(values))},
    "IntMinimum": lambda values: min(values, default=2**31 - 1),
    "IntMaximum": lambda values: max(values, default=-(2**31)),
    "LongMinimum": lambda values: min(values, default=2**63 - 1),
    "LongMaximum": lambda values: max(values, default=-(2**63)),
    "DoubleMinimum": lambda values: min(values, default=float("inf")),
    "DoubleMaximum": lambda values: max(values, default=float("-inf")),
    "ListAccumulator": list,
}
"""What each kind makes of integers; sums of these are exact in floats too."""


def of(name: str, values: list[int]) -> Any:
    accumulator = getattr(kinds, name)()
    for value in values:
        accumulator.add(value)
    return accumulator


@pytest.mark.parametrize("name", VALUE_OF)
@given(values=INTEGERS)
def test_the_local_value_is_that_of_all_added_values(name: str, values: list[int]) -> None:
    local = of(name, values).get_local_value()
    assert local == VALUE_OF[name](values)
    assert list(local) == list(VALUE_OF[name](values)) if isinstance(local, dict) else True


@pytest.mark.parametrize("name", VALUE_OF)
@given(a=INTEGERS, b=INTEGERS)
def test_merging_equals_adding_all_values_to_one_accumulator(
    name: str, a: list[int], b: list[int]
) -> None:
    merged, other = of(name, a), of(name, b)
    merged.merge(other)
    assert merged.get_local_value() == VALUE_OF[name](a + b)
    assert other.get_local_value() == VALUE_OF[name](b)


@pytest.mark.parametrize("name", VALUE_OF)
def test_reset_local_forgets_all_values(name: str) -> None:
    accumulator = of(name, [3, 5])
    accumulator.reset_local()
    assert accumulator.get_local_value() == VALUE_OF[name]([])


@pytest.mark.parametrize("name", VALUE_OF)
def test_clones_and_pickles_are_independent(name: str) -> None:
    accumulator = of(name, [3, 5])
    copies = accumulator.clone(), pickle.loads(pickle.dumps(accumulator))
    accumulator.add(1)
    for copied in copies:
        assert type(copied) is type(accumulator)
        assert copied.get_local_value() == VALUE_OF[name]([3, 5])


@pytest.mark.parametrize("name", ["Histogram", "ListAccumulator"])
def test_a_local_value_is_a_copy(name: str) -> None:
    accumulator = of(name, [3])
    accumulator.get_local_value().clear()
    assert accumulator.get_local_value() == VALUE_OF[name]([3])


@pytest.mark.parametrize(
    ("accumulator", "value"),
    [
        (kinds.IntCounter(4), 4),
        (kinds.LongCounter(5), 5),
        (kinds.DoubleCounter(2), 2.0),
        (kinds.IntMinimum(-3), -3),
        (kinds.DoubleMaximum(0.5), 0.5),
    ],
)
def test_numeric_accumulators_take_an_initial_value(accumulator: Any, value: float) -> None:
    assert accumulator.get_local_value() == value
    assert type(accumulator.get_local_value()) is type(value)
    assert repr(accumulator) == f"{type(accumulator).__name__}({value!r})"
