from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from aggregates import Mean

from opchain.runtime.functions.record_functions import AggregateFunction, ReduceFunction


class Longest(ReduceFunction):  # type: ignore[type-arg]
    def reduce(self, value1: Any, value2: Any) -> Any:
        return max(value1, value2, key=len)


def test_aggregate_and_reduce_functions_combine_values() -> None:
    average = Mean()
    left = average.add(4, average.add(2, average.create_accumulator()))
    right = average.add(9, average.create_accumulator())
    assert average.get_result(average.merge(left, right)) == 5
    assert reduce(Longest().reduce, ["a", "bcd", "ef"]) == "bcd"


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        (ReduceFunction, {"reduce"}),
        (AggregateFunction, {"create_accumulator", "add", "get_result", "merge"}),
    ],
)
def test_each_function_class_has_its_abstract_methods_only(kind: Any, methods: set[str]) -> None:
    assert kind.__abstractmethods__ == methods
