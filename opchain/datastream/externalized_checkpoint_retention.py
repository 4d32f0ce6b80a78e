"""Which checkpoints stay. PyFlink: pyflink.datastream.externalized_checkpoint_retention."""

from __future__ import annotations

from opchain.compiler.settings.externalized_checkpoint_retention import (
    ExternalizedCheckpointRetention,
)

__all__ = [
    "ExternalizedCheckpointRetention",
]
