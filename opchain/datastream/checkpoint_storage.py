"""Checkpoint storages. PyFlink: pyflink.datastream.checkpoint_storage."""

from __future__ import annotations

from opchain.compiler.settings.state_backend import (
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from opchain.reexports import reexports

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]

__getattr__ = reexports(__name__)
