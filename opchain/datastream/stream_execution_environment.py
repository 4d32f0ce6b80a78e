"""StreamExecutionEnvironment. PyFlink: pyflink.datastream.stream_execution_environment."""

from __future__ import annotations

from opchain.compiler.dsl.environment import StreamExecutionEnvironment
from opchain.reexports import reexports

__all__ = [
    "StreamExecutionEnvironment",
]

__getattr__ = reexports(__name__)
