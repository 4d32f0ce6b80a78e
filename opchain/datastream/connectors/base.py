"""Base classes of sources and sinks. PyFlink: pyflink.datastream.connectors.base."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.connectors.commit_sink import CommitSink, SinkEpoch
from opchain.runtime.connectors.outbox import OutboxSink
from opchain.runtime.functions.sink import Committer, DeliveryGuarantee, Sink, SinkWriter
from opchain.runtime.functions.source import Source

__all__ = [
    "CommitSink",
    "Committer",
    "DeliveryGuarantee",
    "OutboxSink",
    "Sink",
    "SinkEpoch",
    "SinkWriter",
    "Source",
]

__getattr__ = reexports(__name__)
