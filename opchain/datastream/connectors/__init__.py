"""Sources and sinks. PyFlink: pyflink.datastream.connectors.

Every name is loaded when it is first asked for, so that importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

_MODULE_OF = {
    "CommitSink": "base",
    "Committer": "base",
    "DataGeneratorSource": "datagen",
    "DeliveryGuarantee": "base",
    "DeltaSink": "sinks",
    "DiscardingSink": "discard",
    "ElasticsearchSink": "sinks",
    "FileSink": "file_system",
    "FileSource": "file_system",
    "HttpSink": "sinks",
    "IcebergSink": "sinks",
    "NumberSequenceSource": "number_seq",
    "OutboxSink": "base",
    "RateLimiterStrategy": "datagen",
    "RedisSink": "sinks",
    "Sink": "base",
    "SinkEpoch": "base",
    "SinkWriter": "base",
    "Source": "base",
    "StreamFormat": "file_system",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        from opchain.reexports import reexports  # noqa: PLC0415 - mostly unused

        return reexports(__name__)(name)
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
