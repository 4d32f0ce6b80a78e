"""State backends. PyFlink: pyflink.datastream.state_backend."""

from __future__ import annotations

from opchain.compiler.settings.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from opchain.reexports import reexports

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "HashMapStateBackend",
    "PredefinedOptions",
    "StateBackend",
]

__getattr__ = reexports(__name__)
