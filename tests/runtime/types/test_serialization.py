"""Schemas and encoders; the bytes are those of Flink 2.3 on Java 17."""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.types.row import Row
from opchain.runtime.types.serialization import (
    BulkWriter,
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    RowDataBulkWriterFactory,
    RowFieldExtractorSchema,
    SerializationSchema,
    SimpleStringEncoder,
    SimpleStringSchema,
)
from opchain.runtime.types.types import Types

ENCODED = [
    ("UTF-8", "aé", b"a\xc3\xa9"),
    ("UTF-8", "\ud800", b"?"),
    ("US-ASCII", "aé\ud800b", b"a??b"),
    ("ISO-8859-1", "é", b"\xe9"),
    ("windows-1252", "€", b"\x80"),
    ("UTF-16", "aé", b"\xfe\xff\x00a\x00\xe9"),
    ("UTF-16", "", b""),
    ("UTF-16BE", "a", b"\x00a"),
    ("UTF-16LE", "a", b"a\x00"),
    ("UTF-32", "a", b"\x00\x00\x00a"),
]


@pytest.mark.parametrize(("charset", "text", "encoded"), ENCODED)
def test_strings_are_encoded_as_in_java(charset: str, text: str, encoded: bytes) -> None:
    assert SimpleStringSchema(charset).serialize(text) == encoded


DECODED = [
    ("UTF-8", b"a\xc3\xa9", "aé"),
    ("UTF-8", b"\xe2\x82a\xff", "\ufffda\ufffd"),
    ("UTF-16", b"\xfe\xff\x00a", "a"),
    ("UTF-16", b"\xff\xfea\x00", "a"),
    ("UTF-16", b"\x00a", "a"),
    ("UTF-16BE", b"\xfe\xff\x00a", "\ufeffa"),
    ("UTF-32", b"\x00\x00\x00a", "a"),
    ("UTF-32", b"\xff\xfe\x00\x00a\x00\x00\x00", "a"),
]


@pytest.mark.parametrize(("charset", "encoded", "text"), DECODED)
def test_strings_are_decoded_as_in_java(charset: str, encoded: bytes, text: str) -> None:
    assert SimpleStringSchema(charset).deserialize(encoded) == text


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["UTF-8", "UTF-16"]))
def test_encoded_strings_are_decoded_unchanged(text: str, charset: str) -> None:
    schema = SimpleStringSchema(charset)
    assert schema.deserialize(schema.serialize(text)) == text


@pytest.mark.parametrize("charset", ["no-such-set", "base64", "rot13"])
def test_an_unknown_character_set_is_refused(charset: str) -> None:
    with pytest.raises(ValueError, match=f"unknown character set '{charset}'"):
        SimpleStringSchema(charset)


def test_bytes_are_not_changed() -> None:
    assert ByteArraySchema().serialize(b"\xff") == b"\xff"
    assert ByteArraySchema().deserialize(b"\xff") == b"\xff"


@pytest.mark.parametrize(
    "schema", [SimpleStringSchema(), SimpleStringSchema("UTF-16"), ByteArraySchema()]
)
def test_schemas_are_compared_by_value(schema: Any) -> None:
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert isinstance(schema, SerializationSchema)
    assert isinstance(schema, DeserializationSchema)
    assert not schema.is_end_of_stream(b"")


def test_schemas_have_a_produced_type() -> None:
    assert SimpleStringSchema().get_produced_type() == Types.STRING()
    assert ByteArraySchema().get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())


def test_a_users_deserialization_schema_needs_one_method() -> None:
    class Length(DeserializationSchema[int]):
        def deserialize(self, message: bytes) -> int:
            return len(message)

    schema = Length()
    schema.open()
    assert schema.deserialize(b"abc") == 3
    assert not schema.is_end_of_stream(3)
    assert schema.get_produced_type() == Types.PICKLED_BYTE_ARRAY()


ROW = Row(b"\x01", None, "x", bytearray(b"\x02"))


@pytest.mark.parametrize(("index", "message"), [(0, b"\x01"), (1, b""), (3, b"\x02")])
def test_a_field_is_serialized_as_a_message(index: int, message: bytes) -> None:
    assert RowFieldExtractorSchema(index).serialize(ROW) == message


def test_a_field_that_is_not_a_message_is_refused() -> None:
    with pytest.raises(ValueError, match="Field index must be non-negative, and is -1"):
        RowFieldExtractorSchema(-1)
    with pytest.raises(TypeError, match="the field is 'x'; it must hold bytes"):
        RowFieldExtractorSchema(2).serialize(ROW)
    with pytest.raises(ValueError, match="has only 4 fields"):
        RowFieldExtractorSchema(4).serialize(ROW)


@pytest.mark.parametrize(
    ("charset", "written"),
    [("UTF-8", b"1\n(2, 'b')\n"), ("UTF-16", b"\xfe\xff\x001\n\xfe\xff\x00(\x002\x00,"[:5])],
)
def test_an_encoder_writes_lines(charset: str, written: bytes) -> None:
    stream = BytesIO()
    encoder = Encoder.simple_string_encoder(charset)
    encoder.encode(1, stream)
    encoder.encode((2, "b"), stream)
    assert stream.getvalue().startswith(written)
    assert pickle.loads(pickle.dumps(encoder)) == encoder


@pytest.mark.parametrize("charset", ["UTF-8", "ASCII", "ISO-8859-1", "UTF-16", "UTF-32", "cp037"])
def test_a_batch_is_encoded_like_single_records(charset: str) -> None:
    encoder = Encoder.simple_string_encoder(charset)
    records = ["a", "", "é", "\ud800", "\udc00", 1, None]
    one_by_one, at_once = BytesIO(), BytesIO()
    for record in records:
        encoder.encode(record, one_by_one)
    encoder.encode_batch(records, at_once)
    assert at_once.getvalue() == one_by_one.getvalue()


def test_an_encoder_requires_a_character_set() -> None:
    with pytest.raises(ValueError, match="unknown character set 'x'"):
        Encoder.simple_string_encoder("x")


class Columns(BulkWriter[Row]):
    """Keeps all rows until finish, which writes their number."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.rows = 0

    def add_element(self, element: Row) -> None:
        self.rows += 1

    def flush(self) -> None:
        pass

    def finish(self) -> None:
        self.stream.write(str(self.rows).encode())


class ColumnsFactory(RowDataBulkWriterFactory):
    def create(self, stream: BinaryIO) -> Columns:
        return Columns(stream)


def test_a_bulk_writer_is_created_for_each_file() -> None:
    row_type = Types.ROW([Types.INT()])
    factory = ColumnsFactory(row_type)
    assert factory.get_row_type() is row_type
    stream = BytesIO()
    writer = factory.create(stream)
    for value in range(3):
        writer.add_element(Row(value))
    writer.flush()
    writer.finish()
    assert stream.getvalue() == b"3"


def test_a_record_of_a_declared_type_is_written_as_by_java() -> None:
    record_type = Types.TUPLE([Types.STRING(), Types.BOOLEAN()])
    encoder = Encoder.simple_string_encoder().for_type(record_type)
    for each in (encoder, pickle.loads(pickle.dumps(encoder))):
        stream = BytesIO()
        each.encode(("a", True), stream)
        assert stream.getvalue() == b"(a,true)\n"
    assert encoder == SimpleStringEncoder(record_type=record_type)
