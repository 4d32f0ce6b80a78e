"""A source of generated records. Java: org.apache.flink.connector.datagen.source. Not in PyFlink."""

from __future__ import annotations

from opchain.runtime.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy

__all__ = [
    "DataGeneratorSource",
    "RateLimiterStrategy",
]
