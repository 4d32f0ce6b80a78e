from __future__ import annotations

import pickle
from datetime import datetime, timezone
from typing import Any

import pytest

from opchain.common import Row, Types
from opchain.datastream.formats.avro import (
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
)
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.formats.row_values import instant_of

pytest.importorskip("fastavro")
SCHEMA = """{"type": "record", "name": "R", "fields": [
    {"name": "id", "type": "int"},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {"name": "inner", "type": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "long"}]}},
    {"name": "inners", "type": {"type": "array", "items": "I"}},
    {"name": "named", "type": {"type": "map", "values": "I"}}
]}"""
AT = instant_of(datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=timezone.utc))


@pytest.mark.parametrize("at", [AT, None])
def test_rows_are_serialized_and_deserialized(at: Any) -> None:
    reads = AvroRowDeserializationSchema(avro_schema_string=SCHEMA)
    writes = AvroRowSerializationSchema(avro_schema_string=SCHEMA)
    row = Row(id=1, at=at, inner=Row(x=1), inners=[Row(x=2)], named={"a": Row(x=3)})
    for _ in range(2):
        assert reads.deserialize(writes.serialize(row)) == row
        plain = Row(1, at, Row(1), [Row(2)], {"a": Row(3)})
        assert writes.serialize(plain) == writes.serialize(row)
        others = Row(f0=1, f1=at, f2=Row(f0=1), f3=[Row(f0=2)], f4={"a": Row(f0=3)})
        assert writes.serialize(others) == writes.serialize(row)
        reads, writes = pickle.loads(pickle.dumps((reads, writes)))
    assert reads.get_produced_type().get_field_names() == ["id", "at", "inner", "inners", "named"]


def test_a_message_that_is_not_avro_is_refused() -> None:
    with pytest.raises(ValueError, match="the message b'' is not a record of the Avro schema"):
        AvroRowDeserializationSchema(avro_schema_string=SCHEMA).deserialize(b"")


@pytest.mark.parametrize("kind", [AvroRowDeserializationSchema, AvroRowSerializationSchema])
def test_a_schema_is_required_and_a_java_class_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="needs avro_schema_string"):
        kind()
    with pytest.raises(
        UnsupportedFeatureError, match=r"the record class 'org\.Click' is a Java class"
    ):
        kind("org.Click")


def test_a_uuid_is_a_text_as_its_type_says() -> None:
    schema = (
        '{"type": "record", "name": "R", "fields": ['
        '{"name": "id", "type": ["null", {"type": "string", "logicalType": "uuid"}]}]}'
    )
    reads = AvroRowDeserializationSchema(avro_schema_string=schema)
    writes = AvroRowSerializationSchema(avro_schema_string=schema)
    row = Row(id="5e1ac6a5-1c0c-4a1f-8d0e-b4a4a3f8a9d1")
    assert reads.get_produced_type() == Types.ROW_NAMED(["id"], [Types.STRING()])
    assert reads.deserialize(writes.serialize(row)) == row
