"""The kinds of metrics: counters, gauges, meters and distributions, with values that JSON can express."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr

if TYPE_CHECKING:
    from collections.abc import Callable


class Metric(ABC):
    """A value, or several, that a function updates while it runs. Flink: `Metric`.

    A MetricGroup creates it. It must be used in the thread of its task.
    """

    __slots__ = ()

    @abstractmethod
    def snapshot(self) -> Any:
        """The current value, which must be small and picklable. Called when the task has ended."""


def plain_values(values: dict[str, Any]) -> dict[str, Any]:
    """Converts numbers, texts, lists, and dicts of these."""
    return {name: plain_value(value) for name, value in values.items()}


def plain_value(value: Any) -> Any:
    """Converts the value of a metric for JSON; NaN becomes None. Metrics with several numbers convert themselves."""
    as_plain = getattr(value, "as_plain", None)
    if as_plain is not None:
        return as_plain()
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Counter(Metric):
    """A count, from 0. Flink: `Counter`. The counts of the subtasks are added up.

    >>> counter = Counter()
    >>> counter.inc()
    >>> counter.inc(5)
    >>> counter.dec(2)
    >>> counter.get_count()
    4
    """

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Increases the count, by 1 by default."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Decreases the count, by 1 by default."""
        self._count -= n

    def get_count(self) -> int:
        """The current count."""
        return self._count

    def snapshot(self) -> int:
        """The count."""
        return self._count


_PLAIN = frozenset({bool, int, float, str, type(None)})


@dataclass(frozen=True, slots=True)
class GaugeFailure:
    """Replaces the value of a gauge whose function raised an exception. The job does not fail."""

    error: str

    def as_plain(self) -> dict[str, Any]:
        """The error as a dict."""
        return {"error": self.error}


@dataclass(frozen=True, slots=True)
class GaugeValue:
    """The last value of the gauge of one subtask."""

    value: bool | float | str | GaugeFailure | None


class Gauge(Metric):
    """A function without arguments that returns a value. Flink: `Gauge`.

    It is called once, when the task has processed everything, before the task is closed. Values other than numbers and
    texts are reported as their `repr`. The values of subtasks are not merged.

    >>> Gauge(lambda: 7).snapshot()
    GaugeValue(value=7)
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def get_value(self) -> Any:
        """The current result of the function."""
        return self._read()

    def snapshot(self) -> GaugeValue:
        """The current value, or the error of the function."""
        try:
            value = self._read()
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            return GaugeValue(GaugeFailure(short_repr(error, 200)))
        return GaugeValue(value if type(value) in _PLAIN else short_repr(value))


@dataclass(frozen=True, slots=True)
class MeterValue:
    """The number of all events, and the recent events per second. Both are sums over the subtasks."""

    count: int
    rate: float

    def as_plain(self) -> dict[str, Any]:
        """The numbers by name."""
        return {"count": self.count, "rate": self.rate}

    def merged(self, other: MeterValue) -> MeterValue:
        """The sum of both."""
        return MeterValue(self.count + other.count, self.rate + other.rate)


class Meter(Metric):
    """Counts events, and their rate over the last `time_span_in_seconds`. Flink: `Meter`, `MeterView`.

    Flink updates the rate every 5 seconds in the background. Here it is computed when it is read, over the time span
    and the elapsed part of the current second. A younger meter averages over its own age.

    Args:
        time_span_in_seconds: The time span of the rate.
        clock: A monotonic clock in seconds, with any origin.
    """

    __slots__ = ("_clock", "_count", "_marks", "_span", "_started")

    def __init__(
        self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if time_span_in_seconds < 1:
            raise ValueError(
                f"the time span of a meter is {time_span_in_seconds} seconds; it must be at least 1"
            )
        self._span = time_span_in_seconds
        self._clock = clock
        self._started = clock()
        self._count = 0
        # (second, count at its start), for whole seconds with events.
        self._marks: deque[tuple[int, int]] = deque()

    def mark_event(self, value: int = 1) -> None:
        """Records this number of events."""
        second = int(self._clock() - self._started)
        marks = self._marks
        if not marks or marks[-1][0] != second:
            marks.append((second, self._count))
            while marks[0][0] < second - self._span:
                marks.popleft()
        self._count += value

    def get_count(self) -> int:
        """The number of all events."""
        return self._count

    def get_rate(self) -> float:
        """The current events per second."""
        age = self._clock() - self._started
        first = max(0, int(age) - self._span)
        before = next((count for second, count in self._marks if second >= first), self._count)
        return (self._count - before) / (age - first) if age > first else 0.0

    def snapshot(self) -> MeterValue:
        """Count and rate."""
        return MeterValue(self._count, self.get_rate())


@dataclass(frozen=True)
class Summary:
    """Count, sum, minimum and maximum of values. `minimum` and `maximum` are None without values."""

    count: int = 0
    sum: float = 0
    minimum: float | None = None
    maximum: float | None = None

    @property
    def mean(self) -> float | None:
        """The arithmetic mean. None without values."""
        return self.sum / self.count if self.count else None

    def added(self, other: Summary) -> tuple[int, float, float | None, float | None]:
        """The fields of the summary of both."""
        least = [item.minimum for item in (self, other) if item.minimum is not None]
        greatest = [item.maximum for item in (self, other) if item.maximum is not None]
        return (
            self.count + other.count,
            self.sum + other.sum,
            min(least, default=None),
            max(greatest, default=None),
        )


@dataclass(frozen=True)
class DistributionValue(Summary):
    """A distribution of values."""

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
        return DistributionValue(*self.added(other))


class SummaryMetric(Metric):
    """Keeps count, sum, minimum and maximum of values."""

    __slots__ = ("_count", "_maximum", "_minimum", "_sum")

    def __init__(self) -> None:
        self._count = 0
        self._sum: float = 0
        self._minimum: float | None = None
        self._maximum: float | None = None

    def _summary(self) -> tuple[int, float, float | None, float | None]:
        return self._count, self._sum, self._minimum, self._maximum


class Distribution(SummaryMetric):
    """Keeps count, sum, minimum and maximum of values. PyFlink: `Distribution`.

    A Histogram also has quantiles.
    """

    __slots__ = ()

    def update(self, value: float) -> None:
        """Adds a value."""
        self._count += 1
        self._sum += value
        if self._minimum is None or self._maximum is None:
            self._minimum = self._maximum = value
        elif value < self._minimum:
            self._minimum = value
        elif value > self._maximum:
            self._maximum = value

    def snapshot(self) -> DistributionValue:
        """Count, sum, minimum and maximum."""
        return DistributionValue(*self._summary())
