"""Flink DataStream programs on Spark, from Python.

This module has the most used names. All names are in `opchain.datastream` and `opchain.common`, as in PyFlink. A name
is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.common import (
        Configuration,
        Duration,
        Row,
        Time,
        TimestampAssigner,
        Types,
        WatermarkStrategy,
    )
    from opchain.datastream import (
        AsyncDataStream,
        ConnectedStreams,
        DataStream,
        DataStreamSink,
        KeyedStream,
        OutputTag,
        RuntimeExecutionMode,
        StreamExecutionEnvironment,
        WindowedStream,
    )
    from opchain.runtime.errors import GraphError, StreamError

__version__ = "0.1.0"

__all__ = [
    "AsyncDataStream",
    "Configuration",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "Duration",
    "GraphError",
    "KeyedStream",
    "OutputTag",
    "Row",
    "RuntimeExecutionMode",
    "StreamError",
    "StreamExecutionEnvironment",
    "Time",
    "TimestampAssigner",
    "Types",
    "WatermarkStrategy",
    "WindowedStream",
    "__version__",
]

_NAMES_OF = {
    "opchain.common": (
        "Configuration",
        "Duration",
        "Row",
        "Time",
        "TimestampAssigner",
        "Types",
        "WatermarkStrategy",
    ),
    "opchain.datastream": (
        "AsyncDataStream",
        "ConnectedStreams",
        "DataStream",
        "DataStreamSink",
        "KeyedStream",
        "OutputTag",
        "RuntimeExecutionMode",
        "StreamExecutionEnvironment",
        "WindowedStream",
    ),
    "opchain.runtime.errors": ("GraphError", "StreamError"),
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value  # the next access does not call __getattr__
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
