"""Files. PyFlink: pyflink.datastream.connectors.file_system."""

from __future__ import annotations

from typing import Any

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

_MISSING = {
    "BulkFormat": "only lines of text are read",
    "FileCompactStrategy": "small files are not merged; write with a lower parallelism instead",
    "FileCompactor": "small files are not merged; write with a lower parallelism instead",
    "FileEnumeratorProvider": "files are found by their paths",
    "FileSplitAssignerProvider": "each subtask reads a contiguous part",
    "StreamingFileSink": "PyFlink calls it deprecated; use FileSink",
}


def __getattr__(name: str) -> Any:
    if name in _MISSING:
        from opchain.runtime.errors import UnsupportedFeatureError  # noqa: PLC0415 - mostly unused

        raise UnsupportedFeatureError(f"there is no {name}: {_MISSING[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
