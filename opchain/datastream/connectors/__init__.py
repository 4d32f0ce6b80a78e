"""Sources and sinks. PyFlink: pyflink.datastream.connectors.

A name is imported when it is first used, so importing this package is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.reexports import reexports

if TYPE_CHECKING:
    from opchain.datastream.connectors.base import (
        CommitSink,
        Committer,
        DeliveryGuarantee,
        OutboxSink,
        Sink,
        SinkEpoch,
        SinkWriter,
        Source,
    )
    from opchain.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
    from opchain.datastream.connectors.discard import DiscardingSink
    from opchain.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
    from opchain.datastream.connectors.number_seq import NumberSequenceSource
    from opchain.datastream.connectors.sinks import (
        DeltaSink,
        ElasticsearchSink,
        HttpSink,
        IcebergSink,
        RedisSink,
    )

__all__ = [
    "CommitSink",
    "Committer",
    "DataGeneratorSource",
    "DeliveryGuarantee",
    "DeltaSink",
    "DiscardingSink",
    "ElasticsearchSink",
    "FileSink",
    "FileSource",
    "HttpSink",
    "IcebergSink",
    "NumberSequenceSource",
    "OutboxSink",
    "RateLimiterStrategy",
    "RedisSink",
    "Sink",
    "SinkEpoch",
    "SinkWriter",
    "Source",
    "StreamFormat",
]

__getattr__ = reexports(
    __name__,
    base="CommitSink Committer OutboxSink SinkEpoch SinkWriter",
    datagen="DataGeneratorSource RateLimiterStrategy",
    discard="DiscardingSink",
    sinks="DeltaSink ElasticsearchSink HttpSink IcebergSink RedisSink",
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
