"""Sum, count, least and greatest of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opchain.runtime.metrics.metric import Metric


@dataclass(frozen=True, slots=True)
class DistributionValue:
    """What values there were; `minimum` and `maximum` are None where there was none."""

    count: int = 0
    sum: float = 0
    minimum: float | None = None
    maximum: float | None = None

    @property
    def mean(self) -> float | None:
        """The arithmetic mean, None of no values."""
        return self.sum / self.count if self.count else None

    def as_plain(self) -> dict[str, Any]:
        """The numbers by name."""
        return {
            "count": self.count,
            "sum": self.sum,
            "min": self.minimum,
            "max": self.maximum,
            "mean": self.mean,
        }

    def merged(self, other: DistributionValue) -> DistributionValue:
        """The distribution of the values of both."""
        least = [item.minimum for item in (self, other) if item.minimum is not None]
        greatest = [item.maximum for item in (self, other) if item.maximum is not None]
        return DistributionValue(
            self.count + other.count,
            self.sum + other.sum,
            min(least, default=None),
            max(greatest, default=None),
        )


class Distribution(Metric):
    """Takes values and keeps four numbers of them. PyFlink: `Distribution`.

    A Histogram also knows quantiles.
    """

    __slots__ = ("_count", "_maximum", "_minimum", "_sum")

    def __init__(self) -> None:
        self._count = 0
        self._sum: float = 0
        self._minimum: float | None = None
        self._maximum: float | None = None

    def update(self, value: float) -> None:
        """Takes a value."""
        self._count += 1
        self._sum += value
        if self._minimum is None or self._maximum is None:
            self._minimum = self._maximum = value
        elif value < self._minimum:
            self._minimum = value
        elif value > self._maximum:
            self._maximum = value

    def snapshot(self) -> DistributionValue:
        """The four numbers."""
        return DistributionValue(self._count, self._sum, self._minimum, self._maximum)
