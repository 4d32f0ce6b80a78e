from __future__ import annotations

import json
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from file_records import read, source_of, write

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.formats.avro_files import (
    AvroBulkWriters,
    AvroReaders,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from opchain.runtime.formats.parquet import AvroParquetReaders, AvroParquetWriters

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pyarrow")
FIELDS: dict[str, Any] = {
    "int": "int",
    "text": "string",
    "day": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "list": {"type": "array", "items": "long"},
    "map": {"type": "map", "values": "double"},
    "inner": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "long"}]},
    "inners": {"type": "array", "items": "I"},
    "kind": {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    "bytes": "bytes",
}
SCHEMA = AvroSchema.parse_string(
    json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": name, "type": ["null", of]} for name, of in FIELDS.items()],
        }
    )
)
RECORDS: list[dict[str, Any]] = [
    {
        "int": 1,
        "text": "ä",
        "day": date(2024, 5, 6),
        "time": time(1, 2, 3, 4),
        "at": datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=timezone.utc),
        "price": Decimal("1.50"),
        "list": [1, 2],
        "map": {"a": 1.5},
        "inner": {"x": 1},
        "inners": [{"x": 2}, {"x": 3}],
        "kind": "B",
        "bytes": b"\x00\xff",
    },
    dict.fromkeys(FIELDS),
]


def test_records_are_read_from_parquet_as_from_avro(tmp_path: Path) -> None:
    parquet = write(tmp_path / "p", AvroParquetWriters.for_generic_record(SCHEMA), RECORDS)
    reads = AvroParquetReaders.for_generic_record(SCHEMA)
    assert read(source_of(reads, parquet), 2) == RECORDS
    assert reads.get_produced_type() == GenericRecordAvroTypeInfo(SCHEMA)
    assert reads.can_be_cut(str(parquet))
    pytest.importorskip("fastavro")
    avro = write(tmp_path / "a", AvroBulkWriters.for_generic_record(SCHEMA), RECORDS)
    assert read(source_of(AvroReaders.for_generic_record(SCHEMA), avro), 2) == RECORDS


def test_a_union_of_several_types_is_refused() -> None:
    schema = AvroSchema.parse_string(
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]}'
    )
    with pytest.raises(UnsupportedFeatureError, match="the Avro union"):
        AvroParquetReaders.for_generic_record(schema)
