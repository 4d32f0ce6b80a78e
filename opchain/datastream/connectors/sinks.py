"""Sinks that PyFlink does not have. Each needs an additional Python package."""

from __future__ import annotations

from opchain.runtime.connectors.lakes import DeltaSink, IcebergSink
from opchain.runtime.connectors.outbox_sinks import ElasticsearchSink, HttpSink, RedisSink

__all__ = ["DeltaSink", "ElasticsearchSink", "HttpSink", "IcebergSink", "RedisSink"]
