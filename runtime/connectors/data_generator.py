"""A source of generated records, for experiments and measurements: their rate, and random values by index.

The values are the same in every run, on every machine, for every parallelism. Only times depend on the clock. A number is
drawn by mixing its index (splitmix64), not from a stream of random numbers. So it does not matter which subtask draws it,
and what was drawn before.
"""

from __future__ import annotations

import decimal
import time
import zlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from opchain.runtime.connectors.collection import contiguous_parts
from opchain.runtime.connectors.unbounded_source import EpochPace, UnboundedSource
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.records.elements import NothingYet
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONGEST_WAIT_S = 0.1
"""The longest time for which a source waits before it is read again."""


class Pace:
    """How many records are due, and how long to wait for the next ones.

    The clock decides when records come, but not which records.

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
        """The number of records that are due now, at most `most`."""
        taken = max(0, min(self._due(), most))
        self._taken += taken
        return taken

    def wait_s(self, most: int) -> float:
        """How long to wait: until the next record is due, or for more records if they come faster than the longest wait."""
        wanted = max(1.0, min(most, self._per_second * LONGEST_WAIT_S))
        wait_s = (self._taken + wanted) / self._per_second - (self._clock() - self._began)
        return max(0.0, min(wait_s, LONGEST_WAIT_S))

    def _due(self) -> int:
        return int((self._clock() - self._began) * self._per_second) - self._taken


_LONG_MAX = (1 << 63) - 1

MOST_PER_EPOCH = 100_000
"""The number of records of an epoch, without a rate."""

LONGEST_DEBT_MS = 10_000
"""The longest time for which the source catches up after a pause. For the rest of a pause it generates no records, and
none for a time in which it waited for its alignment group."""


@dataclass(frozen=True)
class RateLimiterStrategy:
    """The rate of a source: records per second over all subtasks, or None for no limit.

    Flink: RateLimiterStrategy (Java only).
    """

    records_per_second: float | None = None

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """The greatest number of records per second, over all subtasks.

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
        """Not supported: Spark decides how much comes between two checkpoints.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            f"RateLimiterStrategy.per_checkpoint({records_per_checkpoint}) is not supported; use "
            "per_second()"
        )


class GeneratorSplit(NamedTuple):
    """The indexes of one subtask, and its share of the rate; None for no limit."""

    indexes: range
    records_per_second: float | None


class DataGeneratorSource(UnboundedSource[T]):
    """The records that a function gives for the indexes 0, 1, 2, ...

    The function gets only the index, so the records are the same in every run and at every parallelism. Each of n
    subtasks emits a contiguous part of a bounded source, and every n-th record of an unbounded one.

    Flink: `DataGeneratorSource` (Java only).

    Args:
        generator_function: Returns the record of an index.
        count: The number of records; None for an unbounded source.
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
        """The first index, and the time up to which records have been generated."""
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
        met_ms = max(met_ms, now_ms - LONGEST_DEBT_MS, self.waited_until_ms)
        due = int((now_ms - met_ms) * rate / 1000)
        return (index + due, met_ms + int(due * 1000 / rate)) if due > 0 else (index, start[1])

    def splits_between(
        self, start: Sequence[int], end: Sequence[int], parallelism: int
    ) -> list[list[GeneratorSplit]]:
        """The indexes of each subtask: those whose remainder by the parallelism is its number."""
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
        """The records of these indexes. With a rate, NothingYet while no record is due."""
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
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
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
        distance = self.most - self.least
        bits = draw(self.seed, index)
        for part in range(1, -(-distance.bit_length() // 64)):  # more than 64 bits
            bits = bits << 64 | draw(self.seed + part, index)
        return self.least + bits % (distance + 1)


@dataclass(frozen=True)
class RandomFloat:
    """Numbers from `least` to `most`."""

    seed: int
    least: float
    most: float

    def value(self, index: int) -> float:
        """A number."""
        share = (draw(self.seed, index) >> (64 - _FRACTION_BITS)) / (1 << _FRACTION_BITS)
        # Without `most - least`, which may overflow a float.
        return self.least * (1 - share) + self.most * share


ALL_DIGITS = decimal.Context(prec=38)
"""A DECIMAL of SQL has up to 38 digits. Python's default context has 28."""


@dataclass(frozen=True)
class RandomDecimal:
    """Decimals from `least` to `most` with `scale` decimal places."""

    seed: int
    least: decimal.Decimal
    most: decimal.Decimal
    scale: int
    _units: RandomInteger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        least, most = (
            int(bound.scaleb(self.scale, context=ALL_DIGITS)) for bound in (self.least, self.most)
        )
        object.__setattr__(self, "_units", RandomInteger(self.seed, least, most))

    def value(self, index: int) -> decimal.Decimal:
        """A decimal."""
        return decimal.Decimal(self._units.value(index)).scaleb(-self.scale, context=ALL_DIGITS)


@dataclass(frozen=True)
class RandomBoolean:
    """True or false."""

    seed: int

    def value(self, index: int) -> bool:
        """One of the two."""
        return bool(draw(self.seed, index) & 1)


@dataclass(frozen=True)
class RandomText:
    """Texts of hexadecimal digits, as Flink's. Their length may vary from 1 to `length`."""

    seed: int
    length: int
    varies: bool = False

    def value(self, index: int) -> str:
        """A text."""
        length = 1 + draw(~self.seed, index) % self.length if self.varies else self.length
        parts = -(-length // _DIGITS_OF_DRAW)
        # Each part has its own seed, so that texts do not overlap.
        digits = "".join(f"{draw(self.seed + part, index):016x}" for part in range(parts))
        return digits[:length]


@dataclass(frozen=True)
class RandomBytes:
    """Bytes. Their number may vary from 1 to `length`."""

    seed: int
    length: int
    varies: bool = False

    def value(self, index: int) -> bytes:
        """Some bytes."""
        length = 1 + draw(~self.seed, index) % self.length if self.varies else self.length
        return bytes.fromhex(RandomText(self.seed, 2 * length).value(index))


@dataclass(frozen=True)
class RandomTime:
    """Times of the clock in UTC, up to `most_past_ms` ago, so they are not the same in every run.

    `kind` is DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ.
    """

    seed: int
    kind: str
    most_past_ms: int = 0

    def value(self, index: int) -> Any:
        """A time."""
        past_ms = draw(self.seed, index) % self.most_past_ms if self.most_past_ms else 0
        now_ms = time.time_ns() // 1_000_000
        return _TIMES[self.kind](_EPOCH + timedelta(milliseconds=now_ms - past_ms))


_TIMES: dict[str, Callable[[datetime], Any]] = {
    "DATE": datetime.date,
    "TIME": lambda now: now.time().replace(microsecond=0),
    "TIMESTAMP": lambda now: now.replace(tzinfo=None),
    "TIMESTAMP_LTZ": lambda now: now,
}


@dataclass(frozen=True)
class ListGenerator:
    """Lists of `length` values."""

    length: int
    elements: ValueGenerator

    def value(self, index: int) -> list[Any]:
        """A list."""
        first = index * self.length
        return [self.elements.value(first + place) for place in range(self.length)]


@dataclass(frozen=True)
class DictGenerator:
    """Dictionaries of at most `length` entries: equal keys are one entry."""

    keys: ListGenerator
    values: ListGenerator

    def value(self, index: int) -> dict[Any, Any]:
        """A dictionary."""
        return dict(zip(self.keys.value(index), self.values.value(index), strict=True))


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
    """None with probability `rate`, otherwise the value of another generator."""

    seed: int
    rate: float
    others: ValueGenerator
    _chance: RandomFloat = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_chance", RandomFloat(self.seed, 0.0, 1.0))

    def value(self, index: int) -> Any:
        """The value, or None."""
        return None if self._chance.value(index) < self.rate else self.others.value(index)


@dataclass(frozen=True)
class RowGenerator:
    """A generator function for a DataGeneratorSource: rows of named fields, each with its own generator."""

    fields: tuple[tuple[str, ValueGenerator], ...]

    def __call__(self, index: int) -> Any:
        """The row of an index."""
        from opchain.runtime.types.row import Row  # noqa: PLC0415 - types load when rows are made

        row = Row(*(generator.value(index) for _, generator in self.fields))
        row.set_field_names([name for name, _ in self.fields])
        return row

    value = __call__
