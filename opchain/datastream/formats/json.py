"""JSON messages, and files of JSON lines. PyFlink: pyflink.datastream.formats.json, without the files."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.formats.json_lines import (
    JsonLinesEncoder,
    JsonReaderFormat,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)

__all__ = [
    "JsonLinesEncoder",
    "JsonReaderFormat",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
]

__getattr__ = reexports(__name__)
