"""Streaming or batch. PyFlink: pyflink.datastream.execution_mode."""

from __future__ import annotations

from opchain.compiler.settings.execution_mode import RuntimeExecutionMode

__all__ = [
    "RuntimeExecutionMode",
]
