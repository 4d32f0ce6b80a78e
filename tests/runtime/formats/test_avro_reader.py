from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from file_records import Reader, read, read_ranges, source_of, write_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.datastream import OutputTag
from opchain.runtime.connectors.file_source import AvroInputFormat
from opchain.runtime.files.malformed import MalformedRecordError
from opchain.runtime.formats import avro_files as avro_reader
from opchain.runtime.formats.avro_files import (
    AvroBulkWriters,
    AvroReaders,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)

if TYPE_CHECKING:
    from pathlib import Path

fastavro = pytest.importorskip("fastavro")
SCHEMA = AvroSchema.parse_string(
    json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "id", "type": "int"},
                {"name": "name", "type": ["null", "string"], "default": None},
            ],
        }
    )
)
RECORDS = st.lists(
    st.fixed_dictionaries({"id": st.integers(-9, 9), "name": st.none() | st.text(max_size=5)}),
    max_size=12,
)


MARKER = bytes(range(200, 216))
"""As good as a random one: text cannot end in its first bytes, so that it is not found too early."""


def in_blocks(path: Path, records: list[Any], codec: str = "null", size: int = 1) -> Path:
    """A file with blocks of about `size` bytes."""
    with path.open("wb") as stream:
        fastavro.writer(
            stream, SCHEMA.parsed(), records, codec=codec, sync_interval=size, sync_marker=MARKER
        )
    return path


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=60,
)
@given(
    records=RECORDS,
    cuts=st.sets(st.integers(0, 900)),
    codec=st.sampled_from(["null", "deflate"]),
    size=st.integers(1, 40),
    search=st.integers(1, 40),
)
def test_records_are_read_once_for_any_split_of_the_file(
    tmp_path: Path, records: list[Any], cuts: set[int], codec: str, size: int, search: int
) -> None:
    path = in_blocks(tmp_path / "a.avro", records, codec, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro_reader, "_SEARCH_SIZE", search)
        assert read_ranges(AvroReaders.for_generic_record(SCHEMA), path, cuts, 2) == records


def test_records_have_the_readers_schema_or_that_of_the_file(tmp_path: Path) -> None:
    path = in_blocks(tmp_path / "a.avro", [{"id": 1, "name": "a"}])
    newer = json.loads(str(SCHEMA))
    newer["fields"] = [newer["fields"][0], {"name": "rank", "type": "int", "default": 7}]
    schema = AvroSchema.parse_string(json.dumps(newer))
    assert read(source_of(AvroReaders.for_generic_record(schema), path)) == [{"id": 1, "rank": 7}]
    assert read(source_of(AvroReaders.for_generic_record(), path)) == [{"id": 1, "name": "a"}]
    assert AvroReaders.for_generic_record().get_produced_type() is None
    source = AvroInputFormat(path, schema)
    assert source.get_produced_type() == GenericRecordAvroTypeInfo(schema)
    assert read(source) == [{"id": 1, "rank": 7}]


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_records_of_a_damaged_block_are_skipped_and_counted(
    tmp_path: Path, codec: str, parallelism: int
) -> None:
    records = [{"id": number, "name": "x" * 50} for number in range(90)]
    path = in_blocks(tmp_path / "a.avro", records, codec, 1000)
    with path.open("rb") as stream:
        damaged = list(fastavro.block_reader(stream))[2]
    data = bytearray(path.read_bytes())
    data[damaged.offset + 4 : damaged.offset + 30] = b"\xff" * 26
    path.write_bytes(data)
    reader = Reader()
    source = source_of(AvroReaders.for_generic_record(SCHEMA), path, malformed=OutputTag("bad"))
    source.open(reader)
    left = read(source, parallelism)
    lost = [record for record in records if record not in left]
    assert len(lost) == reader.errors == damaged.num_records
    ((_, told),) = reader.emitted
    assert told.place == f"block at byte {damaged.offset}"
    with pytest.raises(MalformedRecordError, match=f"block at byte {damaged.offset}"):
        read(source_of(AvroReaders.for_generic_record(SCHEMA), path), parallelism)


def test_the_error_names_a_file_that_is_not_avro(tmp_path: Path) -> None:
    (tmp_path / "a.avro").write_bytes(b"no Avro")
    with pytest.raises(Exception, match=r".") as failed:
        read(source_of(AvroReaders.for_generic_record(SCHEMA), tmp_path))
    (note,) = getattr(failed.value, "__notes__", [""])
    assert note.startswith(f"while reading '{tmp_path / 'a.avro'}'")


def test_a_large_file_is_read_by_several_subtasks(tmp_path: Path) -> None:
    records = [{"id": number, "name": f"name {number}"} for number in range(20_000)]
    path = write_file(tmp_path, AvroBulkWriters.for_generic_record(SCHEMA), records)
    source = source_of(AvroReaders.for_generic_record(SCHEMA), path)
    assert read(source, 4) == records
    shares = [
        sum(len(batch) for split in part for batch in source.read(split, 1000))
        for part in source.splits(4)
    ]
    assert min(shares) > 2_000
