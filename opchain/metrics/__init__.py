"""Metrics that functions register in their metric group. PyFlink: pyflink.metrics.

Beside PyFlink's names there are Gauge and Histogram, which Flink has in Java.
"""

from __future__ import annotations

from opchain.metrics.metricbase import (
    Counter,
    Distribution,
    Gauge,
    Histogram,
    Meter,
    Metric,
    MetricGroup,
)

__all__ = [
    "Counter",
    "Distribution",
    "Gauge",
    "Histogram",
    "Meter",
    "Metric",
    "MetricGroup",
]
