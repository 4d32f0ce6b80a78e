from __future__ import annotations

import json
import math
from typing import Any

import pytest

from opchain.runtime.measurements.vertex_metrics import PerSubtask
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.metrics.metric_types import (
    DistributionValue,
    GaugeFailure,
    MeterValue,
    plain_value,
    plain_values,
)


@pytest.mark.parametrize("value", [3, 0.5, "text", True, None])
def test_plain_values_are_kept(value: Any) -> None:
    assert plain_value(value) is value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_become_none(value: float) -> None:
    assert plain_value(value) is None


def test_all_values_can_be_written_as_json() -> None:
    values = {
        "busy": math.nan,
        "distribution": DistributionValue(1, 2, 2, 2),
        "empty": HistogramValue(),
        "meter": MeterValue(1, 0.5),
        "gauge": PerSubtask((1, GaugeFailure("KeyError()"))),
    }
    plain = plain_values(values)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert list(plain) == list(values)
    assert plain["empty"]["p99"] is None
