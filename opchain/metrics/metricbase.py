"""Metrics that functions register in their metric group. PyFlink: pyflink.metrics.metricbase."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.metric_group import MetricGroup
from opchain.runtime.metrics.metric_types import Counter, Distribution, Gauge, Meter, Metric

__all__ = [
    "Counter",
    "Distribution",
    "Gauge",
    "Histogram",
    "Meter",
    "Metric",
    "MetricGroup",
]

__getattr__ = reexports(__name__)
