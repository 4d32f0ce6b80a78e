"""The context of a program. PyFlink: pyflink.datastream.stream_execution_environment."""

from __future__ import annotations

from opchain.compiler.dsl.environment import StreamExecutionEnvironment

__all__ = [
    "StreamExecutionEnvironment",
]
