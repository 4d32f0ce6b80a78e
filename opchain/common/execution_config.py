"""ExecutionConfig: settings of a program. PyFlink: pyflink.common.execution_config."""

from __future__ import annotations

from opchain.compiler.settings.execution_config import ExecutionConfig
from opchain.reexports import reexports

__all__ = [
    "ExecutionConfig",
]

__getattr__ = reexports(__name__)
