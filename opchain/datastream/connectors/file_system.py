"""Sources and sinks of files. PyFlink: pyflink.datastream.connectors.file_system."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.connectors.file_buckets import (
    BucketAssigner,
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from opchain.runtime.connectors.file_sink import (
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    StreamingFileSink,
)
from opchain.runtime.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from opchain.runtime.files.malformed import MalformedRecord, MalformedRecordError
from opchain.runtime.formats.text_lines import BulkFormat, StreamFormat

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
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
    "StreamingFileSink",
]

__getattr__ = reexports(__name__)
