from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Types
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.formats.avro_files import AvroSchema, GenericRecordAvroTypeInfo

if TYPE_CHECKING:
    from pathlib import Path


def record(**fields: Any) -> AvroSchema:
    items = [{"name": name, "type": kind} for name, kind in fields.items()]
    return AvroSchema.parse_string(json.dumps({"type": "record", "name": "R", "fields": items}))


INNER = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("int", "Integer"),
        (["null", "long"], "Long"),
        ("bytes", "PrimitiveArrayTypeInfo<Byte>"),
        ({"type": "fixed", "name": "F", "size": 4}, "PrimitiveArrayTypeInfo<Byte>"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "String"),
        ({"type": "array", "items": ["null", "int"]}, "ListTypeInfo<Integer>"),
        ({"type": "map", "values": "double"}, "MapTypeInfo<String, Double>"),
        (INNER, "RowTypeInfo(x: Integer)"),
        ({"type": "int", "logicalType": "date"}, "DateTypeInfo"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "Instant"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "TimestampTypeInfo"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "BigDecimal(9, 2)",
        ),
        ({"type": "string", "logicalType": "unheard-of"}, "String"),
    ],
)
def test_avro_types_are_mapped_to_type_information(kind: Any, shown: str) -> None:
    assert repr(record(a=kind).row_type()) == f"RowTypeInfo(a: {shown})"


def test_a_named_type_can_be_referenced_after_its_definition() -> None:
    again = record(a=INNER, b={"type": "array", "items": "I"}).row_type()
    assert again.get_field_types()[1] == Types.LIST(Types.ROW([Types.INT()]))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (record(a=["int", "string"]), "the Avro union"),
        (record(a="Unknown"), "the Avro type 'Unknown' is not supported"),
        (AvroSchema.parse_string('"int"'), "not an Avro schema of records"),
    ],
)
def test_schemas_without_a_row_type_are_refused(schema: AvroSchema, message: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=message):
        schema.row_type()


def test_schemas_are_read_from_texts_and_files(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(str(record(a="int")))
    assert AvroSchema.parse_file(str(tmp_path / "a.avsc")) == record(a="int")
    with pytest.raises(ValueError, match="the Avro schema is not JSON"):
        AvroSchema.parse_string("record R {}")
    pytest.importorskip("fastavro")
    with pytest.raises(ValueError, match="is not an Avro schema"):
        AvroSchema.parse_string('{"type": "unknown"}').parsed()
    assert record(a="int").parsed()["name"] == "R"


def test_generic_record_avro_type_info_has_the_schema() -> None:
    kind = GenericRecordAvroTypeInfo(record(a="int"))
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert kind.java_class == "GenericRecord"
    assert repr(kind).startswith('GenericRecord({"type": "record"')


def test_names_are_resolved_in_their_namespace() -> None:
    def named(field: str, **settings: Any) -> dict[str, Any]:
        inner = [{"name": field, "type": "int"}]
        return {"type": "record", "name": "I", "fields": inner, **settings}

    schema = {
        "type": "record",
        "name": "R",
        "namespace": "com.x",
        "fields": [
            {"name": "a", "type": named("here")},
            {"name": "b", "type": named("there", namespace="com.y")},
            {"name": "c", "type": {"type": "array", "items": "I"}},
            {"name": "d", "type": ["null", "com.x.I"]},
            {"name": "e", "type": {"type": "map", "values": "com.y.I"}},
        ],
    }
    here, there = (Types.ROW_NAMED([name], [Types.INT()]) for name in ("here", "there"))
    types = AvroSchema.parse_string(json.dumps(schema)).row_type().get_field_types()
    expected = [here, there, Types.LIST(here), here, Types.MAP(Types.STRING(), there)]
    assert types == expected
