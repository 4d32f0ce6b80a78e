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
from opchain.runtime.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from opchain.runtime.files.malformed import MalformedRecord, MalformedRecordError
from opchain.runtime.formats.file_format import BulkFormat, StreamFormat

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "MalformedRecord",
    "MalformedRecordError",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
]

_MISSING = {
    "FileCompactStrategy": "small files are not merged; write with a lower parallelism instead",
    "FileCompactor": "small files are not merged; write with a lower parallelism instead",
    "StreamingFileSink": "PyFlink calls it deprecated; use FileSink",
}


def __getattr__(name: str) -> Any:
    if name in _MISSING:
        from opchain.runtime.errors import UnsupportedFeatureError  # noqa: PLC0415 - mostly unused

        raise UnsupportedFeatureError(f"there is no {name}: {_MISSING[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
