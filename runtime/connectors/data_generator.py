"""A source of made-up records: for trying things out, and for measuring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from opchain.runtime.connectors.pace import EpochPace, Pace
from opchain.runtime.connectors.sequence import contiguous_parts
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_LONG_MAX = (1 << 63) - 1

MOST_PER_EPOCH = 100_000
"""How many records an epoch has where no rate is given."""

LONGEST_DEBT_MS = 10_000
"""What a job that stood still longer than that has missed never comes."""


@dataclass(frozen=True)
class RateLimiterStrategy:
    """How fast a source gives records: so many per second over all subtasks, or None for no limit.

    Flink: RateLimiterStrategy (Java only).
    """

    records_per_second: float | None = None

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """At most so many records in a second, all subtasks together.

        Raises:
            ValueError: It is not more than 0.
        """
        if not records_per_second > 0:
            raise ValueError(
                f"RateLimiterStrategy.per_second got {records_per_second}; it must be more than 0"
            )
        return RateLimiterStrategy(records_per_second)

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """As fast as it goes."""
        return RateLimiterStrategy()

    @staticmethod
    def per_checkpoint(records_per_checkpoint: int) -> NoReturn:
        """Not supported: what comes between two checkpoints is for Spark to say.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"RateLimiterStrategy.per_checkpoint({records_per_checkpoint}) is not supported; use "
            "per_second()"
        )


class GeneratorSplit(NamedTuple):
    """The indexes of one subtask, and its share of the rate; None is as fast as it goes."""

    indexes: range
    records_per_second: float | None


class DataGeneratorSource(UnboundedSource[T]):
    """The records that a function gives for the indexes 0, 1, 2, ...

    The function gets nothing but the index, so the same records come in every run, whatever the
    parallelism. Of a bounded source each subtask emits a contiguous part, of an unbounded one every
    n-th record.

    Flink: `DataGeneratorSource` (Java only).

    Args:
        generator_function: The record of an index.
        count: How many records there are; None for no end.
        records_per_second: The rate of all subtasks together, as a number or a RateLimiterStrategy;
            None for as fast as possible.

    Raises:
        ValueError: A number is out of its range.
    """

    def __init__(
        self,
        generator_function: Callable[[int], T],
        count: int | None = None,
        records_per_second: float | RateLimiterStrategy | None = None,
    ) -> None:
        if isinstance(records_per_second, RateLimiterStrategy):
            records_per_second = records_per_second.records_per_second
        if count is not None and count < 0:
            raise ValueError(f"the count of a data generator is {count}; it must not be negative")
        if records_per_second is not None and not records_per_second > 0:
            raise ValueError(
                f"a data generator emits {records_per_second} records per second; it must be "
                f"more than 0"
            )
        self.generator_function = generator_function
        self.count = count
        self.records_per_second = records_per_second
        self.is_bounded = count is not None
        self._pace = EpochPace(MOST_PER_EPOCH)

    def __repr__(self) -> str:
        how_many = "endless" if self.count is None else f"{self.count} records"
        rate = (
            "" if self.records_per_second is None else f", {self.records_per_second:g} per second"
        )
        return f"DataGeneratorSource({how_many}{rate})"

    def splits(self, parallelism: int) -> list[list[GeneratorSplit]]:
        """Indexes for each subtask, and an even share of the rate."""
        rate = self.records_per_second
        share = None if rate is None else rate / parallelism
        if self.count is None:
            parts = [range(subtask, _LONG_MAX, parallelism) for subtask in range(parallelism)]
        else:
            parts = contiguous_parts(self.count, parallelism)
        return [[GeneratorSplit(part, share)] if part else [] for part in parts]

    def initial_position(self, now_ms: int) -> tuple[int, int]:
        """The first index, and up to when the rate has been met."""
        return 0, now_ms

    def latest_position(self, start: Sequence[int], now_ms: int) -> tuple[int, int]:
        """As far as the rate has it by now."""
        index, met_ms = start
        rate = self.records_per_second
        if rate is None:
            most = MOST_PER_EPOCH
            if self.target_epoch_ms is not None:
                most = self._pace.limit(self.target_epoch_ms, now_ms)
                self._pace.admitted = most
            return index + most, now_ms
        met_ms = max(met_ms, now_ms - LONGEST_DEBT_MS)
        due = int((now_ms - met_ms) * rate / 1000)
        return (index + due, met_ms + int(due * 1000 / rate)) if due > 0 else (index, start[1])

    def splits_between(
        self, start: Sequence[int], end: Sequence[int], parallelism: int
    ) -> list[list[GeneratorSplit]]:
        """The indexes of each subtask: always those that leave its number when divided by the parallelism."""
        first, behind = start[0], end[0]
        return [
            [
                GeneratorSplit(
                    range(first + (subtask - first) % parallelism, behind, parallelism), None
                )
            ]
            for subtask in range(parallelism)
        ]

    def read(self, split: GeneratorSplit, batch_size: int) -> Iterator[Sequence[T]]:
        """The records of these indexes; where a rate is given an empty batch when nothing is due."""
        rate = split.records_per_second
        pace = None if rate is None else Pace(rate)
        generate, indexes = self.generator_function, split.indexes
        first = indexes.start
        while first < indexes.stop:
            size = batch_size if pace is None else pace.take(batch_size)
            behind = min(first + size * indexes.step, indexes.stop)
            yield list(map(generate, range(first, behind, indexes.step)))
            first = first + size * indexes.step
