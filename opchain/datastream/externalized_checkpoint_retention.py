"""Which checkpoints are kept when a job ends. PyFlink: pyflink.datastream.externalized_checkpoint_retention."""

from __future__ import annotations

from opchain.compiler.settings.checkpoint_config import (
    ExternalizedCheckpointRetention,
)
from opchain.reexports import reexports

__all__ = [
    "ExternalizedCheckpointRetention",
]

__getattr__ = reexports(__name__)
