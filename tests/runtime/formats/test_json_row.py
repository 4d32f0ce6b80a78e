from __future__ import annotations

import pickle
from datetime import date, datetime, time, timezone
from typing import Any

import pytest

from opchain.common import Row, Types
from opchain.datastream.formats.json import (
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.types.time_types import ZONED_TIMESTAMP

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


# Written by PyFlink 2.3, except the datetime with a zone.
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Types.SQL_DATE(), date(2020, 1, 2), '"2020-01-02"'),
        (Types.SQL_TIME(), time(1, 2, 30), '"01:02:30Z"'),
        (Types.SQL_TIMESTAMP(), datetime.fromisoformat("2020-01-02"), '"2020-01-02T00:00:00Z"'),
        (
            Types.SQL_TIMESTAMP(),
            datetime.fromisoformat("2020-01-02T03:04:05.120"),
            '"2020-01-02T03:04:05.12Z"',
        ),
        (ZONED_TIMESTAMP, datetime(2020, 1, 2, tzinfo=timezone.utc), '"2020-01-02T00:00:00+00:00"'),
    ],
)
def test_times_are_written_as_flink_reads_them(kind: Any, value: Any, text: str) -> None:
    rows = Types.ROW_NAMED(["at", "more"], [kind, Types.MAP(Types.STRING(), Types.LIST(kind))])
    writes = JsonRowSerializationSchema.builder().with_type_info(rows).build()
    row = Row(at=value, more={"a": [value, None]})
    message = writes.serialize(row)
    assert message.decode() == f'{{"at":{text},"more":{{"a":[{text},null]}}}}'
    assert (
        JsonRowDeserializationSchema.builder().type_info(rows).build().deserialize(message) == row
    )


@pytest.mark.parametrize("message", [b"{", b"[]", b"1", b"\xff", b""])
def test_messages_that_are_not_rows_fail_or_are_skipped(message: bytes) -> None:
    builder = JsonRowDeserializationSchema.builder().type_info(ROW)
    with pytest.raises(ValueError, match="is not a JSON record of RowTypeInfo"):
        builder.build().deserialize(message)
    assert builder.ignore_parse_errors().build().deserialize(message) is None


# Read by PyFlink 2.3.
@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        (Types.INT(), '"x"', None),
        (Types.INT(), "99999999999", None),
        (ROW, '{"id": "x", "name": "y"}', Row(id=None, name="y")),
        (ROW, "5", None),
        (Types.OBJECT_ARRAY(Types.INT()), '[1, "x", 3]', [1, None, 3]),
        (Types.OBJECT_ARRAY(Types.INT()), "5", None),
        (Types.OBJECT_ARRAY(ROW), '[{"id": "x"}, 5]', [Row(id=None, name=None), None]),
        (Types.MAP(Types.STRING(), Types.INT()), '{"a": "x", "b": 2}', {"a": None, "b": 2}),
    ],
)
def test_a_malformed_value_may_become_none(kind: Any, text: str, found: Any) -> None:
    rows = Types.ROW_NAMED(["value", "more"], [kind, Types.INT()])
    builder = JsonRowDeserializationSchema.builder().type_info(rows)
    message = f'{{"value": {text}, "more": 1}}'.encode()
    with pytest.raises(ValueError, match="field 'value'"):
        builder.build().deserialize(message)
    reads = builder.ignore_parse_errors().build()
    assert reads.deserialize(message) == Row(value=found, more=1)


def test_missing_fields_cannot_be_errors_if_errors_are_ignored() -> None:
    builder = JsonRowDeserializationSchema.builder().type_info(ROW).ignore_parse_errors()
    with pytest.raises(ValueError, match="contradict each other"):
        builder.fail_on_missing_field().build()


def test_fields_of_rows_in_lists_may_be_required() -> None:
    rows = Types.ROW_NAMED(["rows"], [Types.LIST(ROW)])
    builder = JsonRowDeserializationSchema.builder().type_info(rows).fail_on_missing_field()
    with pytest.raises(ValueError, match="there is no field 'name'"):
        builder.build().deserialize(b'{"rows": [{"id": 1}]}')


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
