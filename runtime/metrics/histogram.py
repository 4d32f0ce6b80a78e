"""The distribution of values, with quantiles, in bounded memory. Merging histograms in any order gives the same result.

Flink's `DescriptiveStatisticsHistogram` keeps the latest N values. So it depends on the order of values, and cannot be
merged over subtasks. Here all values count. A few different values are counted exactly. With many, values that differ
by less than 2 % share a bucket (the buckets of DDSketch: Masson, Rim, Lee, VLDB 2019), and a quantile is off by at most
1 %. Which of the two applies depends only on the set of values, so merging is associative and commutative.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Any, TypeVar

from opchain.runtime.metrics.metric_types import Summary, SummaryMetric

K = TypeVar("K")

MOST_EXACT = 512
"""The maximum number of different values that are counted exactly."""

_ACCURACY = 0.01
_GAMMA = (1 + _ACCURACY) / (1 - _ACCURACY)
_LOG_GAMMA = math.log(_GAMMA)
_TO_MIDDLE = math.log(2 / (_GAMMA + 1))
_GREATEST_EXPONENT = math.log(sys.float_info.max)

Counts = dict[float, int]


@dataclass(frozen=True)
class HistogramValue(Summary):
    """Counted values: exact counts in `exact`, or counts by bucket in `buckets`. One of the two is empty.

    Bucket `(sign, n)` has the values between gamma**(n-1) and gamma**n, with this sign. Bucket (0, 0) has the value 0.
    """

    exact: Counts = field(default_factory=dict)
    buckets: dict[tuple[int, int], int] = field(default_factory=dict)

    def quantile(self, quantile: float) -> float | None:
        """The value that this share of the values does not exceed: 0.5 gives the median. None without values.

        It is exact with up to MOST_EXACT different values, otherwise within 1 %.

        Raises:
            ValueError: The quantile is not between 0 and 1.
        """
        if not 0 <= quantile <= 1:
            raise ValueError(f"the quantile is {quantile}; it must be between 0 and 1")
        if self.minimum is None or self.maximum is None:
            return None
        rank = max(1, math.ceil(quantile * self.count))
        if rank == 1:
            return self.minimum
        if rank == self.count:
            return self.maximum
        for value, below in self._ascending():
            rank -= below
            if rank <= 0:
                return min(max(value, self.minimum), self.maximum)
        raise AssertionError("the sum of the buckets is less than the count")

    def as_plain(self) -> dict[str, Any]:
        """The numbers by name."""
        return {
            "count": self.count,
            "min": self.minimum,
            "max": self.maximum,
            "mean": self.mean,
            "p50": self.quantile(0.5),
            "p95": self.quantile(0.95),
            "p99": self.quantile(0.99),
        }

    def merged(self, other: HistogramValue) -> HistogramValue:
        """The histogram of the values of both."""
        exact = dict(self.exact)
        buckets = dict(self.buckets)
        _add(exact, other.exact)
        _add(buckets, other.buckets)
        if buckets or len(exact) > MOST_EXACT:
            _add_to_buckets(buckets, exact)
            exact = {}
        return HistogramValue(*self.added(other), exact, buckets)

    def _ascending(self) -> list[tuple[float, int]]:
        found = dict(self.exact) or {
            _middle(bucket): count for bucket, count in self.buckets.items()
        }
        return sorted(found.items())


class Histogram(SummaryMetric):
    """A distribution of values, with count, mean, extremes and quantiles. Flink: `Histogram`."""

    __slots__ = ("_buckets", "_exact")

    def __init__(self) -> None:
        super().__init__()
        self._exact: Counts = {}
        self._buckets: dict[tuple[int, int], int] = {}

    def update(self, value: float) -> None:
        """Adds a value.

        Raises:
            ValueError: The value is not a finite number.
        """
        if not math.isfinite(value):
            raise ValueError(f"a histogram takes finite numbers, not {value!r}")
        if self._minimum is None or self._maximum is None:
            self._minimum = self._maximum = value
        elif value < self._minimum:
            self._minimum = value
        elif value > self._maximum:
            self._maximum = value
        self._count += 1
        self._sum += value
        if self._buckets:
            bucket = _bucket(value)
            self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
            return
        self._exact[value] = self._exact.get(value, 0) + 1
        if len(self._exact) > MOST_EXACT:
            _add_to_buckets(self._buckets, self._exact)
            self._exact = {}

    def get_count(self) -> int:
        """The number of values."""
        return self._count

    def get_statistics(self) -> HistogramValue:
        """The distribution of the values so far. Flink: `HistogramStatistics`."""
        return self.snapshot()

    def snapshot(self) -> HistogramValue:
        """The distribution of the values."""
        return HistogramValue(*self._summary(), dict(self._exact), dict(self._buckets))


def _bucket(value: float) -> tuple[int, int]:
    if value == 0:
        return 0, 0
    number = math.ceil(math.log(abs(value)) / _LOG_GAMMA)
    return (1, number) if value > 0 else (-1, number)


def _middle(bucket: tuple[int, int]) -> float:
    """A value that differs by at most 1 % from any value of the bucket."""
    sign, number = bucket
    return sign * math.exp(min(number * _LOG_GAMMA + _TO_MIDDLE, _GREATEST_EXPONENT))


def _add_to_buckets(buckets: dict[tuple[int, int], int], exact: Counts) -> None:
    for value, count in exact.items():
        bucket = _bucket(value)
        buckets[bucket] = buckets.get(bucket, 0) + count


def _add(into: dict[K, int], counts: dict[K, int]) -> None:
    for key, count in counts.items():
        into[key] = into.get(key, 0) + count
