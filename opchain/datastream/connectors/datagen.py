"""Made-up records; PyFlink has none of this. Java: org.apache.flink.connector.datagen.source."""

from __future__ import annotations

from opchain.runtime.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy

__all__ = [
    "DataGeneratorSource",
    "RateLimiterStrategy",
]
