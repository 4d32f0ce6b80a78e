from __future__ import annotations

import pickle
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.connectors.collection import (
    NumberSequenceSource,
    StatefulSequenceSource,
    contiguous_parts,
)


@pytest.mark.parametrize(
    ("start", "end", "parallelism", "expected"),
    [
        (1, 7, 1, [[range(1, 8)]]),
        (1, 7, 3, [[range(1, 4)], [range(4, 6)], [range(6, 8)]]),
        (5, 6, 4, [[range(5, 6)], [range(6, 7)], [], []]),
        (-2, 2, 2, [[range(-2, 1)], [range(1, 3)]]),
    ],
)
def test_the_first_subtasks_get_the_remainder_of_the_division(
    start: int, end: int, parallelism: int, expected: list[list[range]]
) -> None:
    assert NumberSequenceSource(start, end).splits(parallelism) == expected


@given(st.integers(-100, 100), st.integers(0, 200), st.integers(1, 40), st.integers(1, 9))
def test_all_numbers_are_read_once_and_in_order(
    start: int, count: int, parallelism: int, batch_size: int
) -> None:
    source = NumberSequenceSource(start, start + count)
    splits = source.splits(parallelism)
    batches = [
        batch for part in splits for split in part for batch in source.read(split, batch_size)
    ]
    assert [number for batch in batches for number in batch] == list(
        range(start, start + count + 1)
    )
    assert all(1 <= len(batch) <= batch_size for batch in batches)
    assert len(splits) == parallelism


@given(st.integers(0, 1000), st.integers(1, 50))
def test_sizes_of_splits_differ_by_at_most_one(count: int, parts: int) -> None:
    sizes = [len(part) for part in contiguous_parts(count, parts)]
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_a_sequence_of_all_64_bit_numbers_is_split_lazily() -> None:
    source = NumberSequenceSource(-(1 << 63), (1 << 63) - 1)
    (first,), *_, (last,) = source.splits(7)
    assert (first.start, last.stop) == (-(1 << 63), 1 << 63)
    assert next(iter(source.read(last, 3))) == range(last.start, last.start + 3)


@pytest.mark.parametrize("bounds", [(2, 1), (1 << 63, 1 << 63), (-(1 << 63) - 1, 0)])
def test_invalid_bounds_are_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="number sequence"):
        NumberSequenceSource(*bounds)


@pytest.mark.parametrize("bounds", [(1.0, 2), (1, "2"), (True, 2)])
def test_a_bound_must_be_an_int(bounds: Any) -> None:
    with pytest.raises(TypeError, match="it must be an int"):
        NumberSequenceSource(*bounds)


def test_a_sequence_source_can_be_pickled() -> None:
    source = pickle.loads(pickle.dumps(NumberSequenceSource(1, 3)))
    assert repr(source) == "NumberSequenceSource(1, 3)"


class Subtask:
    def __init__(self, index: int, parallelism: int) -> None:
        self.index = index
        self.parallelism = parallelism

    def get_index_of_this_subtask(self) -> int:
        return self.index

    def get_number_of_parallel_subtasks(self) -> int:
        return self.parallelism


class Collected:
    def __init__(self, source: StatefulSequenceSource, stop_at: int | None = None) -> None:
        self.numbers: list[int] = []
        self.source = source
        self.stop_at = stop_at

    def get_checkpoint_lock(self) -> Any:
        return nullcontext()

    def collect(self, number: int) -> None:
        self.numbers.append(number)
        if number == self.stop_at:
            self.source.cancel()


@pytest.mark.parametrize(("index", "expected"), [(0, [1, 4, 7]), (1, [2, 5]), (2, [3, 6])])
def test_the_legacy_source_function_distributes_numbers_over_subtasks(
    index: int, expected: list[int]
) -> None:
    source = StatefulSequenceSource(1, 7)
    source.open(Subtask(index, 3))
    collected = Collected(source)
    source.run(collected)
    assert collected.numbers == expected


def test_the_legacy_source_function_stops_when_it_is_cancelled() -> None:
    source = StatefulSequenceSource(1, 7)
    source.open(Subtask(0, 1))
    collected = Collected(source, stop_at=2)
    source.run(collected)
    assert collected.numbers == [1, 2]
