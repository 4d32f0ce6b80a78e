from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from file_records import read, source_of, write

from opchain.runtime.formats.avro_files import AvroBulkWriters, AvroReaders, AvroSchema

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("fastavro")
SCHEMA = AvroSchema.parse_string(
    '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}'
)


def test_written_records_are_read_back_and_files_are_reproducible(tmp_path: Path) -> None:
    records = [{"id": number} for number in range(5)]
    writes = AvroBulkWriters.for_generic_record(SCHEMA)
    paths = [write(tmp_path / name, writes, records) for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert read(source_of(AvroReaders.for_generic_record(SCHEMA), paths[0])) == records


def test_a_block_is_written_when_the_writer_is_flushed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as stream:
        writer = AvroBulkWriters.for_generic_record(SCHEMA).create(stream)
        writer.add_element({"id": 1})
        before = stream.tell()
        writer.flush()
        assert stream.tell() > before
        writer.finish()
    assert read(source_of(AvroReaders.for_generic_record(SCHEMA), path)) == [{"id": 1}]


@pytest.mark.parametrize("record", [{}, {"id": "a"}, {"id": None}, {"id": 2**70}, {"id": 1.5}, 5])
def test_a_record_that_does_not_match_the_schema_is_refused(tmp_path: Path, record: object) -> None:
    with pytest.raises(ValueError, match="is not a record of the Avro schema"):
        write(tmp_path, AvroBulkWriters.for_generic_record(SCHEMA), [record])
