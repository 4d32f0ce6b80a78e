from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.measurements.vertex_metrics import PerSubtask, merge_values
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.metrics.metric_types import (
    DistributionValue,
    GaugeFailure,
    GaugeValue,
    MeterValue,
)


@pytest.mark.parametrize(
    ("values", "merged"),
    [
        ([3, 4, -1], 6),
        ([MeterValue(1, 0.5), MeterValue(2, 0.25)], MeterValue(3, 0.75)),
        (
            [DistributionValue(1, 2, 2, 2), DistributionValue()],
            DistributionValue(1, 2, 2, 2),
        ),
        (
            [
                HistogramValue(1, 1, 1, 1, {1: 1}),
                HistogramValue(2, 6, 1, 5, {1: 1, 5: 1}),
            ],
            HistogramValue(3, 7, 1, 5, {1: 2, 5: 1}),
        ),
        ([GaugeValue(1), GaugeValue(2)], PerSubtask((1, 2))),
        ([GaugeValue(7)], PerSubtask((7,))),
        ([3, MeterValue(1, 0.5)], PerSubtask((3, MeterValue(1, 0.5)))),
    ],
    ids=["counts", "meters", "distributions", "histograms", "gauges", "one gauge", "mixed"],
)
def test_each_kind_of_metric_is_merged_in_its_way(values: list[Any], merged: Any) -> None:
    assert merge_values(values) == merged


def test_per_subtask_values_are_converted_to_plain_values() -> None:
    values = PerSubtask((3, GaugeFailure("KeyError(1)"), MeterValue(1, 0.5)))
    assert values.as_plain() == [3, {"error": "KeyError(1)"}, {"count": 1, "rate": 0.5}]
