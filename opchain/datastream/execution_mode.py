"""RuntimeExecutionMode: streaming or batch. PyFlink: pyflink.datastream.execution_mode."""

from __future__ import annotations

from opchain.compiler.settings.execution_config import RuntimeExecutionMode
from opchain.reexports import reexports

__all__ = [
    "RuntimeExecutionMode",
]

__getattr__ = reexports(__name__)
