from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.metrics.accumulators import (
    FailedAccumulator,
    Histogram,
    ListAccumulator,
    LongCounter,
    SentAccumulator,
    merge_accumulators,
)


def sent(name: str, accumulator: Any, operator: str = "parse") -> SentAccumulator:
    return SentAccumulator(operator, name, pickle.dumps(accumulator))


class Unwilling(LongCounter):
    def merge(self, other: LongCounter) -> None:
        raise ArithmeticError("not with you")


class Hollow(LongCounter):
    def get_local_value(self) -> int:
        raise ArithmeticError("empty")


@given(st.lists(st.integers(0, 99), max_size=8))
def test_accumulators_of_subtasks_and_operators_are_merged(counts: list[int]) -> None:
    merged = merge_accumulators(
        sent("words", LongCounter(count), f"operator {number}")
        for number, count in enumerate(counts)
    )
    assert merged == ({"words": sum(counts)} if counts else {})


def test_lists_are_ordered_by_subtask_and_names_by_first_occurrence() -> None:
    first, second = ListAccumulator(), ListAccumulator()
    first.add("a")
    second.add("b")
    merged = merge_accumulators([sent("z", first), sent("y", LongCounter(1)), sent("z", second)])
    assert list(merged.items()) == [("z", ["a", "b"]), ("y", 1)]


def test_accumulators_of_different_kinds_under_one_name_have_no_value() -> None:
    merged = merge_accumulators(
        [
            sent("n", LongCounter(1), "parse"),
            sent("n", Histogram(), "count"),
            sent("m", LongCounter(2)),
        ]
    )
    assert merged["m"] == 2
    assert merged["n"] == FailedAccumulator(
        "it is a LongCounter in 'parse' and a Histogram in 'count'; use different names, or one class"
    )


def test_an_accumulator_that_raises_in_merge_or_get_has_no_value() -> None:
    merged = merge_accumulators(
        [
            sent("merge", Unwilling(1)),
            sent("merge", Unwilling(2)),
            sent("value", Hollow(1)),
            SentAccumulator("parse", "bytes", b"no pickle"),
            sent("fine", LongCounter(3)),
        ]
    )
    assert merged["fine"] == 3
    assert merged["merge"] == FailedAccumulator("ArithmeticError: not with you")
    assert merged["value"] == FailedAccumulator("ArithmeticError: empty")
    assert merged["bytes"].error.startswith("UnpicklingError: ")
