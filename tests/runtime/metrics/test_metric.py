from __future__ import annotations

import pytest

from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.metric_types import Counter, Distribution, Gauge, Meter, Metric


def test_a_metric_is_a_contract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Metric()  # type: ignore[abstract]


@pytest.mark.parametrize("kind", [Counter, Distribution, Gauge, Histogram, Meter])
def test_all_kinds_are_metrics(kind: type) -> None:
    assert issubclass(kind, Metric)
    assert not hasattr(kind.__new__(kind), "__dict__")
