"""Parquet. PyFlink: pyflink.datastream.formats.parquet."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.formats.parquet_reader import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetColumnarRowInputFormat,
)
from opchain.runtime.formats.parquet_writer import ParquetBulkWriters

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
]

__getattr__ = reexports(__name__)
