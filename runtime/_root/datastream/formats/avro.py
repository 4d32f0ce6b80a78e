"""Avro. PyFlink: pyflink.datastream.formats.avro."""

from __future__ import annotations

from typing import Any

from opchain.runtime.formats.avro_reader import AvroInputFormat, AvroReaders
from opchain.runtime.formats.avro_schema import AvroSchema, GenericRecordAvroTypeInfo
from opchain.runtime.formats.avro_writer import AvroBulkWriters

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroReaders",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]

_MISSING = {
    "AvroRowDeserializationSchema": "Avro is read from files only",
    "AvroRowSerializationSchema": "Avro is written to files only",
}


def __getattr__(name: str) -> Any:
    if name in _MISSING:
        from opchain.runtime.errors import UnsupportedFeatureError  # noqa: PLC0415 - mostly unused

        raise UnsupportedFeatureError(f"there is no {name}: {_MISSING[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
