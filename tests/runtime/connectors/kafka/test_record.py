"""Batches of Kafka messages that become records at once."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from forms import job_of

from opchain.common import Row, SimpleStringSchema, Types, WatermarkStrategy
from opchain.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from opchain.datastream.formats.csv import CsvRowDeserializationSchema
from opchain.datastream.formats.json import JsonRowDeserializationSchema
from opchain.runtime.connectors.kafka.record import Deserializer, MalformedMessageError
from opchain.runtime.records.columns import Columns

ROW = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
JSON = JsonRowDeserializationSchema.builder().type_info(ROW)
CSV = CsvRowDeserializationSchema.Builder(ROW)
TEXTS: dict[str, tuple[Any, list[bytes]]] = {
    "json": (JSON.build(), [b'{"id": 1, "name": "a"}', b'{"id": 2}', b'{"name": null, "id": 3}\n']),
    "csv": (CSV.build(), [b"1,a", b"2,\r\n", b"3,c"]),
    "text": (SimpleStringSchema(), [b"a", b"", "ü".encode()]),
}


class DoublesIds(JsonRowDeserializationSchema):
    def deserialize(self, message: bytes) -> Row:
        row = super().deserialize(message)
        row["id"] *= 2
        return row


def message(value: bytes | None, offset: int = 0) -> Any:
    return SimpleNamespace(
        topic=lambda: "orders",
        partition=lambda: 0,
        offset=lambda: offset,
        key=lambda: None,
        value=lambda: value,
        timestamp=lambda: (1, 1_000 + offset),
    )


def messages(values: list[bytes | None]) -> list[Any]:
    return [message(value, offset) for offset, value in enumerate(values)]


@pytest.mark.parametrize("name", TEXTS)
def test_a_batch_has_the_records_of_its_messages(name: str) -> None:
    schema, values = TEXTS[name]
    records, timestamps = Deserializer(schema)(messages([*values]))
    assert list(records) == list(map(schema.deserialize, values))
    assert timestamps == [1_000, 1_001, 1_002]


@pytest.mark.parametrize("name", ["json", "csv"])
def test_rows_of_a_batch_are_columns(name: str) -> None:
    schema, values = TEXTS[name]
    records, _ = Deserializer(schema)(messages([*values]))
    assert isinstance(records, Columns)


@pytest.mark.parametrize("bad", [b"{", b"", b"[]", b'{"id": "x"}', b"\xff", None])
def test_a_malformed_message_fails_the_batch_or_is_skipped_alone(bad: bytes | None) -> None:
    values = [b'{"id": 1, "name": "a"}', bad, b'{"id": 2, "name": "b"}']
    with pytest.raises(MalformedMessageError, match="topic orders, partition 0, offset 1"):
        Deserializer(JSON.build())(messages(values))
    records, timestamps = Deserializer(JSON.build(), "skip")(messages(values))
    assert (records, timestamps) == ([Row(id=1, name="a"), Row(id=2, name="b")], [1_000, 1_002])


def test_a_schema_that_ignores_parse_errors_skips_malformed_messages() -> None:
    schema = JsonRowDeserializationSchema.builder().type_info(ROW).ignore_parse_errors().build()
    records, timestamps = Deserializer(schema)(messages([b"{", b'{"id": 2, "name": "b"}']))
    assert (records, timestamps) == ([Row(id=2, name="b")], [1_001])


@pytest.mark.parametrize("values", [[b'{"id": 1}', b"null", b'{"id": 2}'], [b"null", b"null"]])
def test_a_message_that_is_null_has_no_row(values: list[bytes | None]) -> None:
    records, timestamps = Deserializer(JSON.build())(messages(values))
    given = [(json.loads(value or b""), 1_000 + offset) for offset, value in enumerate(values)]
    expected = [(each["id"], time) for each, time in given if each is not None]
    assert [(row.id, time) for row, time in zip(records, timestamps, strict=True)] == expected


def test_a_subclass_with_its_own_deserialize_gets_each_message() -> None:
    schema = DoublesIds(ROW, fails_on_missing_field=False, ignores_parse_errors=False)
    records, _ = Deserializer(schema)(messages([b'{"id": 1}', b'{"id": 2}']))
    assert [row["id"] for row in records] == [2, 4]


def test_generated_code_reads_rows_of_messages_field_by_field() -> None:
    def draw(env: Any) -> None:
        builder = KafkaSource.builder().set_bootstrap_servers("127.0.0.1:9").set_topics("orders")
        builder = builder.set_value_only_deserializer(JSON.build())
        source = builder.set_bounded(KafkaOffsetsInitializer.latest()).build()
        orders = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
        orders.map(lambda order: (order.name, order.id + 1)).print()

    code = job_of(draw).vertices[0].source
    assert code is not None
    assert "for field_0, field_1, timestamp in values.rows(timestamps):" in code
    assert "if values.__class__ is not Columns:" in code
