"""One value of a metric from those of its subtasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from opchain.runtime.metrics.distribution import DistributionValue
from opchain.runtime.metrics.gauge import GaugeValue
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.metrics.meter import MeterValue
from opchain.runtime.metrics.plain_values import plain_value

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class PerSubtask:
    """Values that have no sum, of the subtasks that have one, in their order."""

    values: tuple[Any, ...]

    def as_plain(self) -> list[Any]:
        """The values as a list."""
        return [plain_value(value) for value in self.values]


def merge_values(values: Sequence[Any]) -> Any:
    """The snapshots of one metric as one.

    Counts add up; gauges stay one by one. So does what is a different kind of metric in different
    subtasks: each function decides by itself what it registers.
    """
    for kind in (DistributionValue, HistogramValue, MeterValue):
        if all(isinstance(value, kind) for value in values):
            return reduce(kind.merged, values)
    if all(type(value) is int for value in values):
        return sum(values)
    return PerSubtask(
        tuple(value.value if isinstance(value, GaugeValue) else value for value in values)
    )
