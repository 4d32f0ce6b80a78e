from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from forms import run_form, seen
from hypothesis import given
from hypothesis import strategies as st

from opchain.common import WatermarkStrategy
from opchain.runtime.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy
from opchain.runtime.errors import UnsupportedFeatureError


def square(index: int) -> int:
    return index * index


def read(source: DataGeneratorSource[Any], parallelism: int, batch_size: int) -> list[list[Any]]:
    return [
        [
            record
            for split in of_subtask
            for batch in source.read(split, batch_size)
            for record in batch
        ]
        for of_subtask in source.splits(parallelism)
    ]


@given(st.integers(0, 50), st.integers(1, 6), st.integers(1, 9))
def test_all_records_are_generated_once_at_any_parallelism(
    count: int, parallelism: int, batch_size: int
) -> None:
    by_subtask = read(DataGeneratorSource(square, count), parallelism, batch_size)
    assert len(by_subtask) == parallelism
    assert [record for records in by_subtask for record in records] == [
        index * index for index in range(count)
    ]


def test_an_unbounded_source_distributes_indexes_over_subtasks() -> None:
    source = DataGeneratorSource(square)
    assert not source.is_bounded
    assert DataGeneratorSource(square, 3).is_bounded
    firsts = [
        list(islice((record for batch in source.read(split, 2) for record in batch), 3))
        for (split,) in source.splits(2)
    ]
    assert firsts == [[0, 4, 16], [1, 9, 25]]


def test_the_rate_is_divided_among_subtasks() -> None:
    source = DataGeneratorSource(square, 4, records_per_second=1e9)
    assert {split.records_per_second for (split,) in source.splits(4)} == {2.5e8}
    assert read(source, 2, 1) == [[0, 1], [4, 9]]


@pytest.mark.parametrize(
    ("count", "rate", "message"),
    [(-1, None, "the count of a data generator is -1"), (1, 0, "emits 0 records per second")],
)
def test_invalid_counts_and_rates_are_refused(count: int, rate: float | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataGeneratorSource(square, count, rate)


def test_the_repr_shows_count_and_rate() -> None:
    assert repr(DataGeneratorSource(square)) == "DataGeneratorSource(endless)"
    assert repr(DataGeneratorSource(square, 3, 2)) == "DataGeneratorSource(3 records, 2 per second)"


def test_data_generator_source_runs_in_a_job() -> None:
    def draw(env: Any) -> None:
        source = DataGeneratorSource(square, 10, 1e6)
        seen(env.from_source(source, WatermarkStrategy.no_watermarks(), "squares"), "out")

    assert run_form(draw, parallelism=3).records("out") == [index * index for index in range(10)]


def test_a_rate_may_be_given_as_a_rate_limiter_strategy() -> None:
    plain = DataGeneratorSource(square, 10, 8.0)
    limited = DataGeneratorSource(square, 10, RateLimiterStrategy.per_second(8.0))
    assert limited.splits(2) == plain.splits(2)
    assert limited.splits(2)[0][0].records_per_second == 4.0
    free = DataGeneratorSource(square, 10, RateLimiterStrategy.no_op())
    assert free.splits(2) == DataGeneratorSource(square, 10).splits(2)


def test_impossible_rates_are_refused() -> None:
    with pytest.raises(ValueError, match=r"per_second got 0; it must be more than 0"):
        RateLimiterStrategy.per_second(0)
    with pytest.raises(UnsupportedFeatureError, match=r"per_checkpoint\(5\) is not supported"):
        RateLimiterStrategy.per_checkpoint(5)
