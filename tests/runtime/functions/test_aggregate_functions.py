from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from opchain.runtime.functions.record_functions import AggregateFunction, ReduceFunction


class Average(AggregateFunction[int, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Longest(ReduceFunction):  # type: ignore[type-arg]
    def reduce(self, value1: Any, value2: Any) -> Any:
        return max(value1, value2, key=len)


def test_they_fold() -> None:
    average = Average()
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
def test_each_kind_has_its_methods_and_nothing_else_to_write(kind: Any, methods: set[str]) -> None:
    assert kind.__abstractmethods__ == methods
