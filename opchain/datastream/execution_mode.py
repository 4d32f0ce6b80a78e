"""Streaming or batch. PyFlink: pyflink.datastream.execution_mode."""

from __future__ import annotations

from opchain.compiler.settings.execution_config import RuntimeExecutionMode

__all__ = [
    "RuntimeExecutionMode",
]
