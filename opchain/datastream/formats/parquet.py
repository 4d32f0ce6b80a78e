"""Parquet. PyFlink: pyflink.datastream.formats.parquet."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
]

__getattr__ = reexports(__name__)
