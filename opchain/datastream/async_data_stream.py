"""Async operations on a stream. PyFlink: pyflink.datastream.async_data_stream."""

from __future__ import annotations

from opchain.compiler.dsl.async_data_stream import AsyncDataStream
from opchain.reexports import reexports

__all__ = [
    "AsyncDataStream",
]

__getattr__ = reexports(__name__)
