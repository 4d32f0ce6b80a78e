"""Random values by index: the same in every run, on every machine, for every parallelism.

A number is drawn by mixing its index (splitmix64), not from a stream of random numbers: which subtask
draws it, and what was drawn before, makes no difference.
"""

from __future__ import annotations

import decimal
import zlib
from dataclasses import dataclass, field
from typing import Any, Protocol

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
    """Decimals from `least` to `most` with `scale` digits behind the point."""

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
class Sequence:
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
