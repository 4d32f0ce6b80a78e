from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.connectors.collection import CollectionSource
from opchain.runtime.connectors.data_generator import (
    LONGEST_DEBT_MS,
    MOST_PER_EPOCH,
    DataGeneratorSource,
)
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Ranges(UnboundedSource[int]):
    def initial_position(self, now_ms: int) -> int:
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        return start + 1

    def splits_between(self, start: int, end: int, parallelism: int) -> Any:
        return [[range(start, end)]]

    def splits(self, parallelism: int) -> Any:
        return []

    def read(self, split: range, batch_size: int) -> Iterator[Sequence[int]]:
        yield list(split)


def test_an_unbounded_source_reads_delivered_splits_and_does_not_end() -> None:
    source = Ranges()
    assert not source.is_bounded
    assert list(source.read_delivery(pickle.dumps(range(3)), 10)) == [[0, 1, 2]]


def test_a_source_that_reads_its_own_splits_refuses_a_delivery() -> None:
    with pytest.raises(InternalError, match="3 bytes were delivered"):
        CollectionSource([1]).read_delivery(b"abc", 10)


def numbers(start: Any, end: Any, parallelism: int) -> list[list[int]]:
    source = DataGeneratorSource(lambda index: index)
    return [
        [number for split in splits for batch in source.read(split, 7) for number in batch]
        for splits in source.splits_between(start, end, parallelism)
    ]


@pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
def test_a_generator_emits_each_index_between_two_positions_once(parallelism: int) -> None:
    found = numbers((7, 0), (29, 0), parallelism)
    assert sorted(index for part in found for index in part) == list(range(7, 29))
    assert all(index % parallelism == number for number, part in enumerate(found) for index in part)
    assert numbers((7, 0), (7, 9), parallelism) == [[] for _ in range(parallelism)]


def test_the_position_of_a_generator_with_a_rate_follows_the_clock() -> None:
    source = DataGeneratorSource(lambda index: index, records_per_second=100)
    start = source.initial_position(1_000)
    assert source.latest_position(start, 1_009) == start
    one = source.latest_position(start, 1_019)
    assert one == (1, 1_010)
    assert source.latest_position(one, 1_019) == one
    assert source.latest_position(one, 2_010)[0] == 101


def test_a_generator_that_was_paused_catches_up_a_limited_time_only() -> None:
    source = DataGeneratorSource(lambda index: index, records_per_second=10)
    assert source.latest_position((5, 0), 10 * LONGEST_DEBT_MS)[0] == 5 + LONGEST_DEBT_MS // 100


def test_a_generator_without_a_rate_emits_a_fixed_number_per_epoch() -> None:
    source = DataGeneratorSource(lambda index: index)
    assert source.latest_position((3, 0), 7)[0] == 3 + MOST_PER_EPOCH
