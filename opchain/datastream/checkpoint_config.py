"""The settings of checkpoints. PyFlink: pyflink.datastream.checkpoint_config."""

from __future__ import annotations

from opchain.compiler.settings.checkpoint_config import CheckpointConfig
from opchain.reexports import reexports

__all__ = [
    "CheckpointConfig",
]

__getattr__ = reexports(__name__)
