"""Avro files, written."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.missing_library import imported
from opchain.runtime.serialization import BulkWriter, BulkWriterFactory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.formats.avro_schema import AvroSchema


class AvroBulkWriters:
    """Makes factories for FileSink. Flink: AvroBulkWriters of PyFlink."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> AvroBulkWriterFactory:
        """Writes dicts (or what behaves like them) with the fields of the schema."""
        return AvroBulkWriterFactory(schema)


class AvroBulkWriterFactory(BulkWriterFactory[Any]):
    """Makes writers of Avro files, uncompressed as Flink's."""

    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema

    def create(self, stream: BinaryIO) -> AvroBulkWriter:
        """A writer into the open file.

        Raises:
            MissingLibraryError: fastavro is not installed.
        """
        return AvroBulkWriter(self.schema, stream)


class AvroBulkWriter(BulkWriter[Any]):
    """Gathers records to blocks."""

    def __init__(self, schema: AvroSchema, stream: BinaryIO) -> None:
        fastavro_write = imported("fastavro.write", "files", "writing Avro")
        # Any marker will do that is not in the data by chance: this one is the same in every run.
        marker = hashlib.md5(schema.text.encode(), usedforsecurity=False).digest()
        self._writer = fastavro_write.Writer(stream, schema.parsed(), sync_marker=marker)

    def add_element(self, element: Any) -> None:
        """Takes one record.

        Raises:
            ValueError: It is none of the schema.
        """
        try:
            self._writer.write(element)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{element!r} is no record of the Avro schema: {error!r}") from error

    def add_batch(self, elements: Sequence[Any]) -> None:
        """Takes records."""
        for element in elements:
            self.add_element(element)

    def flush(self) -> None:
        """Writes the block that gathers."""
        self._writer.flush()

    def finish(self) -> None:
        """Writes the last block."""
        self._writer.flush()
