"""JSON. PyFlink: pyflink.datastream.formats.json, which has no files of JSON lines."""

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
