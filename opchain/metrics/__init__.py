"""Metrics that functions register in their metric group. PyFlink: pyflink.metrics.

Gauge and Histogram are not in PyFlink. They have their names in Flink's Java API.
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
