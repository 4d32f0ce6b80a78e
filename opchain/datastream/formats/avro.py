"""Avro. PyFlink: pyflink.datastream.formats.avro."""

from __future__ import annotations

from opchain.runtime.formats.avro_reader import AvroInputFormat, AvroReaders
from opchain.runtime.formats.avro_row import (
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
)
from opchain.runtime.formats.avro_schema import AvroSchema, GenericRecordAvroTypeInfo
from opchain.runtime.formats.avro_writer import AvroBulkWriters

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroReaders",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]
