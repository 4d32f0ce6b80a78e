"""CheckpointingMode: exactly once or at least once. PyFlink: pyflink.datastream.checkpointing_mode."""

from __future__ import annotations

from opchain.compiler.settings.checkpoint_config import CheckpointingMode
from opchain.reexports import reexports

__all__ = [
    "CheckpointingMode",
]

__getattr__ = reexports(__name__)
