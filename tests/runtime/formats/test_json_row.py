from __future__ import annotations

import pickle

import pytest

from opchain.common import Row, Types
from opchain.datastream.formats.json import (
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from opchain.runtime.errors import UnsupportedFeatureError

ROW = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


def test_rows_are_serialized_and_deserialized() -> None:
    reads = JsonRowDeserializationSchema.builder().type_info(ROW).build()
    writes = JsonRowSerializationSchema.builder().with_type_info(ROW).build()
    row = Row(id=1, name="ä")
    for _ in range(2):
        message = writes.serialize(row)
        assert message == '{"id":1,"name":"ä"}'.encode()
        assert reads.deserialize(message) == row
        reads, writes = pickle.loads(pickle.dumps((reads, writes)))
    assert reads.get_produced_type() == ROW


@pytest.mark.parametrize("message", [b"{", b"[]", b'{"id": "x"}', b"\xff", b""])
def test_messages_that_are_not_rows_fail_or_are_skipped(message: bytes) -> None:
    builder = JsonRowDeserializationSchema.builder().type_info(ROW)
    with pytest.raises(ValueError, match="is not a JSON record of RowTypeInfo"):
        builder.build().deserialize(message)
    assert builder.ignore_parse_errors().build().deserialize(message) is None


def test_fields_may_be_missing_by_default() -> None:
    builder = JsonRowDeserializationSchema.builder().type_info(ROW)
    assert builder.build().deserialize(b"{}") == Row(id=None, name=None)
    with pytest.raises(ValueError, match="there is no field 'id'"):
        builder.fail_on_missing_field().build().deserialize(b"{}")


def test_a_type_is_required() -> None:
    with pytest.raises(TypeError, match="has no type; set it with type_info"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(TypeError, match="has no type; set it with with_type_info"):
        JsonRowSerializationSchema.builder().build()
    with pytest.raises(UnsupportedFeatureError, match="json_schema"):
        JsonRowDeserializationSchema.builder().json_schema("{}")
