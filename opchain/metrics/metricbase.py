"""Metrics that functions register in their metric group. PyFlink: pyflink.metrics.metricbase."""

from __future__ import annotations

from opchain.runtime.metrics.counter import Counter
from opchain.runtime.metrics.distribution import Distribution
from opchain.runtime.metrics.gauge import Gauge
from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.meter import Meter
from opchain.runtime.metrics.metric import Metric
from opchain.runtime.metrics.metric_group import MetricGroup

__all__ = [
    "Counter",
    "Distribution",
    "Gauge",
    "Histogram",
    "Meter",
    "Metric",
    "MetricGroup",
]
