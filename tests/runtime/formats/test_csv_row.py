from __future__ import annotations

import pickle

import pytest

from opchain.common import Row, Types
from opchain.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema

ROW = Types.ROW_NAMED(
    ["id", "name", "tags"], [Types.INT(), Types.STRING(), Types.LIST(Types.STRING())]
)


def test_rows_are_serialized_and_deserialized() -> None:
    reads = CsvRowDeserializationSchema.Builder(ROW).build()
    writes = CsvRowSerializationSchema.Builder(ROW).build()
    row = Row(id=1, name='ä,"', tags=["a", "b"])
    for _ in range(2):
        message = writes.serialize(row)
        assert message == '1,"ä,""",a;b\n'.encode()
        assert reads.deserialize(message) == row
        reads, writes = pickle.loads(pickle.dumps((reads, writes)))
    assert reads.get_produced_type() == ROW


def test_builder_settings_apply_to_messages() -> None:
    reads = CsvRowDeserializationSchema.Builder(ROW).set_field_delimiter("|")
    reads.set_array_element_delimiter("+").set_quote_character("'").set_escape_character("\\")
    reads.set_null_literal("-").set_allow_comments(False)
    row = Row(id=None, name="a|b", tags=["x", "y"])
    assert reads.build().deserialize(b"-|'a|b'|x+y") == row
    writes = CsvRowSerializationSchema.Builder(ROW).set_field_delimiter("|").set_line_delimiter("")
    writes.set_array_element_delimiter("+").set_quote_character("'").set_escape_character("\\")
    assert writes.set_null_literal("-").build().serialize(row) == b"-|'a|b'|'x+y'"
    plain = writes.disable_quote_character().build()
    assert plain.serialize(row) == b"-|a\\|b|x+y"


@pytest.mark.parametrize("message", [b"x,a,b", b"1", b'1,"a,b', b"\xff,a,b", b""])
def test_messages_that_are_not_rows_fail_or_are_skipped(message: bytes) -> None:
    builder = CsvRowDeserializationSchema.Builder(ROW)
    with pytest.raises(ValueError, match="is not a CSV record of RowTypeInfo"):
        builder.build().deserialize(message)
    assert builder.set_ignore_parse_errors(True).build().deserialize(message) is None
