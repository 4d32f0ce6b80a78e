"""Streams and what can be done with them. PyFlink: pyflink.datastream.data_stream."""

from __future__ import annotations

from opchain.compiler.dsl.collected import CloseableIterator
from opchain.compiler.dsl.connected_streams import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
)
from opchain.compiler.dsl.data_stream import CachedDataStream, DataStream
from opchain.compiler.dsl.data_stream_sink import DataStreamSink
from opchain.compiler.dsl.interval_join import IntervalJoin
from opchain.compiler.dsl.joined_streams import CoGroupedStreams, JoinedStreams
from opchain.compiler.dsl.keyed_stream import KeyedStream
from opchain.compiler.dsl.partition_window import PartitionWindowedStream
from opchain.compiler.dsl.reinterpret import DataStreamUtils
from opchain.compiler.dsl.windowed_stream import AllWindowedStream, WindowedStream
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
