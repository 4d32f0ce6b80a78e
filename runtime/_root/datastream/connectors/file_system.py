"""Files. PyFlink: pyflink.datastream.connectors.file_system."""

from __future__ import annotations

from opchain.runtime.connectors.file_source import FileSource, FileSourceBuilder, StreamFormat

__all__ = [
    "FileSource",
    "FileSourceBuilder",
    "StreamFormat",
]
