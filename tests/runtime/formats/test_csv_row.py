from __future__ import annotations

import pickle
from decimal import Decimal

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


@pytest.mark.parametrize("message", [b"1,a,b,c", b'1,"a,b', b"\xff,a,b", b""])
def test_messages_that_are_not_rows_fail_or_are_skipped(message: bytes) -> None:
    builder = CsvRowDeserializationSchema.Builder(ROW)
    with pytest.raises(ValueError, match="is not a CSV record of RowTypeInfo"):
        builder.build().deserialize(message)
    assert builder.set_ignore_parse_errors(True).build().deserialize(message) is None


# Written by PyFlink 2.3.
@pytest.mark.parametrize("text", ["100", "1.50", "0.0", "-20"])
def test_decimals_without_precision_keep_their_digits(text: str) -> None:
    rows = Types.ROW([Types.BIG_DEC(), Types.OBJECT_ARRAY(Types.BIG_DEC())])
    writes = CsvRowSerializationSchema.Builder(rows).build()
    value = Decimal(text)
    assert writes.serialize(Row(value, [value, value])) == f"{text},{text};{text}\n".encode()


# Read by PyFlink 2.3.
@pytest.mark.parametrize(
    ("message", "found"),
    [
        (b"x,a,1;2", Row(id=None, name="a", tags=[1, 2])),
        (b"99999999999,a,1", Row(id=None, name="a", tags=[1])),
        (b"1", Row(id=1, name=None, tags=None)),
        (b"1,a,1;x;3", Row(id=1, name="a", tags=[1, None, 3])),
    ],
)
def test_missing_and_malformed_fields_may_become_none(message: bytes, found: Row) -> None:
    tags = Types.OBJECT_ARRAY(Types.INT())
    rows = Types.ROW_NAMED(["id", "name", "tags"], [Types.INT(), Types.STRING(), tags])
    builder = CsvRowDeserializationSchema.Builder(rows)
    with pytest.raises(ValueError, match="is not a CSV record"):
        builder.build().deserialize(message)
    assert builder.set_ignore_parse_errors(True).build().deserialize(message) == found
