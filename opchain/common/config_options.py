"""Configuration options. PyFlink: pyflink.common.config_options."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.configuration.options import ConfigOption, ConfigOptions

__all__ = [
    "ConfigOption",
    "ConfigOptions",
]

__getattr__ = reexports(__name__)
