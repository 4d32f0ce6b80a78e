"""HybridSource: several sources, one after another. PyFlink: pyflink.datastream.connectors.hybrid_source."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.connectors.hybrid_source import HybridSource, HybridSourceBuilder

__all__ = [
    "HybridSource",
    "HybridSourceBuilder",
]

__getattr__ = reexports(__name__)
