"""Sinks that are ours alone, each on a library of its own."""

from __future__ import annotations

from opchain.runtime.connectors.bulk_sinks import ElasticsearchSink, HttpSink, RedisSink
from opchain.runtime.connectors.lakes import DeltaSink, IcebergSink

__all__ = ["DeltaSink", "ElasticsearchSink", "HttpSink", "IcebergSink", "RedisSink"]
