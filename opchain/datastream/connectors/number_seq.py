"""A source of numbers. PyFlink: pyflink.datastream.connectors.number_seq."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.connectors.collection import NumberSequenceSource

__all__ = [
    "NumberSequenceSource",
]

__getattr__ = reexports(__name__)
