"""Streams and their transformations. PyFlink: pyflink.datastream.data_stream."""

from __future__ import annotations

from opchain.compiler.dsl.collected import CloseableIterator
from opchain.compiler.dsl.connected_streams import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
)
from opchain.compiler.dsl.data_stream import DataStream, DataStreamSink
from opchain.compiler.dsl.joins import CoGroupedStreams, IntervalJoin, JoinedStreams
from opchain.compiler.dsl.keyed_stream import CachedDataStream, DataStreamUtils, KeyedStream
from opchain.compiler.dsl.windowed_stream import (
    AllWindowedStream,
    PartitionWindowedStream,
    WindowedStream,
)
from opchain.reexports import reexports

__all__ = [
    "WINDOW_STATE_NAME",
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "CoGroupedStreams",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "DataStreamUtils",
    "IntervalJoin",
    "JoinedStreams",
    "KeyedStream",
    "PartitionWindowedStream",
    "WindowedStream",
]

WINDOW_STATE_NAME = "window-contents"

__getattr__ = reexports(__name__)
