"""Avro. PyFlink: pyflink.datastream.formats.avro."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.connectors.file_source import AvroInputFormat
from opchain.runtime.formats.avro_files import (
    AvroBulkWriters,
    AvroReaders,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroReaders",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]

__getattr__ = reexports(__name__)
