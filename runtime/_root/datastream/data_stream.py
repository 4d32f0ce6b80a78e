"""Streams and what can be done with them. PyFlink: pyflink.datastream.data_stream.

Loaded when first asked for: the DSL is part of the compiler, which executors do without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.compiler.dsl.all_windowed_stream import AllWindowedStream
    from opchain.compiler.dsl.broadcast_stream import BroadcastConnectedStream, BroadcastStream
    from opchain.compiler.dsl.co_grouped_streams import CoGroupedStreams
    from opchain.compiler.dsl.collected import CloseableIterator
    from opchain.compiler.dsl.connected_streams import ConnectedStreams
    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.data_stream_sink import DataStreamSink
    from opchain.compiler.dsl.interval_join import IntervalJoin
    from opchain.compiler.dsl.joined_streams import JoinedStreams
    from opchain.compiler.dsl.keyed_stream import KeyedStream
    from opchain.compiler.dsl.partition_window import PartitionWindowedStream
    from opchain.compiler.dsl.windowed_stream import WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CloseableIterator",
    "CoGroupedStreams",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "IntervalJoin",
    "JoinedStreams",
    "KeyedStream",
    "PartitionWindowedStream",
    "WindowedStream",
]

_MODULE_OF = {
    "AllWindowedStream": "opchain.compiler.dsl.all_windowed_stream",
    "BroadcastConnectedStream": "opchain.compiler.dsl.broadcast_stream",
    "BroadcastStream": "opchain.compiler.dsl.broadcast_stream",
    "CloseableIterator": "opchain.compiler.dsl.collected",
    "CoGroupedStreams": "opchain.compiler.dsl.co_grouped_streams",
    "ConnectedStreams": "opchain.compiler.dsl.connected_streams",
    "DataStream": "opchain.compiler.dsl.data_stream",
    "DataStreamSink": "opchain.compiler.dsl.data_stream_sink",
    "IntervalJoin": "opchain.compiler.dsl.interval_join",
    "JoinedStreams": "opchain.compiler.dsl.joined_streams",
    "KeyedStream": "opchain.compiler.dsl.keyed_stream",
    "PartitionWindowedStream": "opchain.compiler.dsl.partition_window",
    "WindowedStream": "opchain.compiler.dsl.windowed_stream",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
