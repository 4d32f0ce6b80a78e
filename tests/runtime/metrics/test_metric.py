from __future__ import annotations

import pytest

from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.metric_types import Counter, Distribution, Gauge, Meter, Metric


def test_metric_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Metric()  # type: ignore[abstract]


@pytest.mark.parametrize("kind", [Counter, Distribution, Gauge, Histogram, Meter])
def test_all_kinds_of_metrics_are_subclasses_of_metric(kind: type) -> None:
    assert issubclass(kind, Metric)
    assert not hasattr(kind.__new__(kind), "__dict__")
