"""A source of generated records, for experiments and measurements: their rate, and random values by index.

The values are the same in every run, on every machine, for every parallelism. A number is drawn by mixing its index
(splitmix64), not from a stream of random numbers. So it does not matter which subtask draws it, and what was drawn
before.
"""

from __future__ import annotations

import decimal
import time
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from opchain.runtime.connectors.collection import contiguous_parts
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.records.elements import NothingYet
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONGEST_WAIT_S = 0.1
"""After how long a source that waits is asked again."""


class Pace:
    """Says how many records are due, and where none is, how long to wait.

    The clock decides when records come, and never which ones.

    Args:
        per_second: Records per second on average, more than 0.
        clock: Seconds from any origin.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._clock = clock
        self._began = clock()
        self._taken = 0

    def take(self, most: int) -> int:
        """How many records may be read now, at most `most`; 0 where none is due."""
        taken = max(0, min(self._due(), most))
        self._taken += taken
        return taken

    def wait_s(self, most: int) -> float:
        """How long to wait for one record where records are rare, else for those of a whole wait at once."""
        wanted = max(1.0, min(most, self._per_second * LONGEST_WAIT_S))
        wait_s = (self._taken + wanted) / self._per_second - (self._clock() - self._began)
        return max(0.0, min(wait_s, LONGEST_WAIT_S))

    def _due(self) -> int:
        return int((self._clock() - self._began) * self._per_second) - self._taken


FILES_PER_EPOCH = 10_000
BYTES_PER_EPOCH = 1 << 30


class FileAdmission(NamedTuple):
    """How much an epoch reads at most. Without a time, the job's target counts, or 10 seconds."""

    files: int = FILES_PER_EPOCH
    size_bytes: int = BYTES_PER_EPOCH
    time_ms: int | None = None


class EpochPace:
    """How much an epoch may have that is to take no longer than a given time: records, or bytes.

    The time from one decision to the next one is that of the epoch between them. An epoch that was smaller than
    it might have been may have waited for input, so it can only show that the job is faster.

    Args:
        first: How much the first epoch gets, whose speed nobody knows yet.
    """

    def __init__(self, first: int) -> None:
        self.admitted = 0
        self._first = self._limit = first
        self._decided_ms = 0
        self._per_ms = 0.0

    def limit(self, time_ms: int, now_ms: int) -> int:
        """The number; `admitted` says how much the epoch got in the end."""
        took_ms = now_ms - self._decided_ms
        if self.admitted and took_ms > 0:
            measured = self.admitted / took_ms
            if self.admitted >= self._limit or measured > self._per_ms:
                self._per_ms = (self._per_ms + measured) / 2 if self._per_ms else measured
        self._decided_ms = now_ms
        self._limit = max(int(self._per_ms * time_ms), 1) if self._per_ms else self._first
        return self._limit


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
        """No limit."""
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
        """The position that the rate allows by now."""
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
        """The records of these indexes; where a rate is given, NothingYet when nothing is due."""
        rate = split.records_per_second
        pace = None if rate is None else Pace(rate)
        generate, indexes = self.generator_function, split.indexes
        first = indexes.start
        while first < indexes.stop:
            size = batch_size if pace is None else pace.take(batch_size)
            if pace is not None and not size:
                yield NothingYet(pace.wait_s(batch_size))
                continue
            behind = min(first + size * indexes.step, indexes.stop)
            yield list(map(generate, range(first, behind, indexes.step)))
            first = first + size * indexes.step


_MASK = (1 << 64) - 1
_DIGITS_OF_DRAW = 16
_FRACTION_BITS = 53


class ValueGenerator(Protocol):
    """Gives the value of one field of the record with an index."""

    def value(self, index: int) -> Any:
        """The value."""


def seed_of(name: str) -> int:
    """A seed that is the same for the same name."""
    return _mixed(zlib.crc32(name.encode()))


def draw(seed: int, index: int) -> int:
    """64 random bits.

    >>> draw(seed_of("word"), 0) == draw(seed_of("word"), 0) != draw(seed_of("word"), 1)
    True
    """
    return _mixed(seed ^ _mixed(index))


def _mixed(number: int) -> int:
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


@dataclass(frozen=True)
class RandomInteger:
    """Whole numbers from `least` to `most`, both included."""

    seed: int
    least: int
    most: int

    def value(self, index: int) -> int:
        """A number."""
        return self.least + draw(self.seed, index) % (self.most - self.least + 1)


@dataclass(frozen=True)
class RandomFloat:
    """Numbers from `least` to `most`."""

    seed: int
    least: float
    most: float

    def value(self, index: int) -> float:
        """A number."""
        share = (draw(self.seed, index) >> (64 - _FRACTION_BITS)) / (1 << _FRACTION_BITS)
        # Not the difference of the two, which may be more than a float holds.
        return self.least * (1 - share) + self.most * share


@dataclass(frozen=True)
class RandomDecimal:
    """Decimals from `least` to `most` with `scale` decimal places."""

    seed: int
    least: decimal.Decimal
    most: decimal.Decimal
    scale: int
    _units: RandomInteger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        least, most = (int(bound.scaleb(self.scale)) for bound in (self.least, self.most))
        object.__setattr__(self, "_units", RandomInteger(self.seed, least, most))

    def value(self, index: int) -> decimal.Decimal:
        """A decimal."""
        return decimal.Decimal(self._units.value(index)).scaleb(-self.scale)


@dataclass(frozen=True)
class RandomBoolean:
    """True or false."""

    seed: int

    def value(self, index: int) -> bool:
        """One of the two."""
        return bool(draw(self.seed, index) & 1)


@dataclass(frozen=True)
class RandomText:
    """Texts of hexadecimal digits, as Flink's."""

    seed: int
    length: int

    def value(self, index: int) -> str:
        """A text."""
        parts = -(-self.length // _DIGITS_OF_DRAW)
        # A seed of its own for each part, so that texts do not overlap.
        digits = "".join(f"{draw(self.seed + part, index):016x}" for part in range(parts))
        return digits[: self.length]


@dataclass(frozen=True)
class SequenceGenerator:
    """The numbers from `start` on, as `kind` makes them: int, float, str, Decimal."""

    start: int
    kind: Any = int

    def value(self, index: int) -> Any:
        """The number of the index."""
        return self.kind(self.start + index)


@dataclass(frozen=True)
class SometimesNull:
    """None with a probability from 0 to 1, else what `of_others` gives."""

    seed: int
    rate: float
    of_others: ValueGenerator
    _chance: RandomFloat = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_chance", RandomFloat(self.seed, 0.0, 1.0))

    def value(self, index: int) -> Any:
        """The value, or None."""
        return None if self._chance.value(index) < self.rate else self.of_others.value(index)


@dataclass(frozen=True)
class RowGenerator:
    """Rows of named fields, each with its generator: what a DataGeneratorSource calls."""

    fields: tuple[tuple[str, ValueGenerator], ...]

    def __call__(self, index: int) -> Any:
        """The row of an index."""
        from opchain.runtime.types.row import Row  # noqa: PLC0415 - types load when rows are made

        row = Row(*(generator.value(index) for _, generator in self.fields))
        row.set_field_names([name for name, _ in self.fields])
        return row
