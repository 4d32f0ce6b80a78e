"""Windows that keep their greatest records: fields that they do not read, and comparisons that are not min or max."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, failure_of, notes_of, run_form, seen

from opchain.common import Time, WatermarkStrategy
from opchain.datastream import AggregateFunction
from opchain.datastream.window import TumblingEventTimeWindows


def key(row: Any) -> Any:
    return row[0]


def time_of(row: Any, _: int) -> int:
    return row[1]


class Total(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value[2]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, a: Any, b: Any) -> Any:
        return a + b


def windows(env: Any, function: Any, end: int = 9) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(time_of)
    rows = env.from_sequence(1, end).map(function).assign_timestamps_and_watermarks(strategy)
    return rows.key_by(key).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))


def short(x: int) -> Any:
    return [(x % 2, x, x), (7, 5)][x == 5]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("form", FORMS)
def test_the_only_record_of_a_window_is_not_compared(form: str, mode: str) -> None:
    def draw(env: Any) -> Any:
        return seen(windows(env, short).reduce(lambda a, b: a if a[2] >= b[2] else b), "out")

    found = run_form(draw, form, mode=mode).records("out")
    assert sorted(found) == [(0, 8, 8), (1, 9, 9), (7, 5)]


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_field_is_an_error_of_the_window_operator(form: str) -> None:
    def draw(env: Any) -> Any:
        return seen(windows(env, short).aggregate(Total()), "out")

    error = failure_of(draw, form)
    assert isinstance(error, IndexError)
    assert "in 'TumblingEventTimeWindows'" in notes_of(error)


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: (a[0], max(a[1], b[1]), max(a[2], b[2], key=abs)),
        lambda a, b: (a[0], max(a[1], b[1]), min(b[2], a[2], key=abs)),
        lambda a, b: (a[0], max(a[1], b[1]), a[2] if a[2] < b[2] < a[2] else b[2]),
    ],
)
def test_reduces_that_depend_on_the_order_of_records_are_not_ranked(
    function: Any, mode: str
) -> None:
    def draw(env: Any) -> Any:
        rows = windows(env, lambda x: (x % 3, 40 - x, x * 7 % 11 - 5), 40)
        return seen(rows.reduce(function), "out")

    expected = run_form(draw, "interpreted", mode=mode).records("out")
    assert run_form(draw, "inlined", mode=mode).records("out") == expected
