"""CSV. PyFlink: pyflink.datastream.formats.csv."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.formats.csv_reader import CsvReaderFormat
from opchain.runtime.formats.csv_schema import CsvSchema, CsvSchemaBuilder
from opchain.runtime.formats.csv_writer import (
    CsvBulkWriters,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
)

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]

__getattr__ = reexports(__name__)
