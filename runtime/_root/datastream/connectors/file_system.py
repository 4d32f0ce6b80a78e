"""Files. PyFlink: pyflink.datastream.connectors.file_system."""

from __future__ import annotations

from opchain.runtime.connectors.file_buckets import BucketAssigner
from opchain.runtime.connectors.file_naming import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from opchain.runtime.connectors.file_sink import FileSink
from opchain.runtime.connectors.file_source import FileSource, FileSourceBuilder, StreamFormat

__all__ = [
    "BucketAssigner",
    "DefaultRollingPolicy",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
]
