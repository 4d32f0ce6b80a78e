"""The configuration of a program. PyFlink: pyflink.common.configuration."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.configuration.configuration import Configuration

__all__ = [
    "Configuration",
]

__getattr__ = reexports(__name__)
