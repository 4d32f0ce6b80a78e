"""What every source and sink is. PyFlink: pyflink.datastream.connectors.base."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.functions.sink import Committer, DeliveryGuarantee, Sink, SinkWriter
from opchain.runtime.functions.source import Source

__all__ = [
    "Committer",
    "DeliveryGuarantee",
    "Sink",
    "SinkWriter",
    "Source",
]

__getattr__ = reexports(__name__)
