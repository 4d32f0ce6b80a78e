"""Avro and JSON with a schema registry: a server with its REST protocol, and Confluent's serializers."""

from __future__ import annotations

import base64
import json
import pickle
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

from opchain.common import Configuration, Row, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.kafka import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
    ConfluentRegistryJsonDeserializationSchema,
    ConfluentRegistryJsonSerializationSchema,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from opchain.runtime.connectors.kafka.client import KafkaConnectorError
from opchain.runtime.connectors.kafka.record import MalformedMessageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_broker import Kafka

confluent = pytest.importorskip("confluent_kafka.schema_registry")
serializing = pytest.importorskip("confluent_kafka.serialization")

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "user", "type": "string"}, {"name": "price", "type": "double"}],
    }
)
ORDER_JSON = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"user": {"type": "string"}, "price": {"type": "number"}},
        "required": ["user"],
    }
)
LOGIN = "reader:secret"


class Server(ThreadingHTTPServer):
    """A registry with its REST protocol, which keeps schemas in memory."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def id_of(self, described: dict[str, Any]) -> int:
        if described not in self.schemas:
            self.schemas.append(described)
        return self.schemas.index(described) + 1


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.answer(None)

    def do_POST(self) -> None:
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, body: Any) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        expected = "Basic " + base64.b64encode(LOGIN.encode()).decode()
        if self.headers.get("Authorization") != expected:
            self.send(401, {"error_code": 401, "message": "who are you?"})
            return
        try:
            self.send(200, self.found(path.strip("/").split("/"), body))
        except LookupError:
            self.send(404, {"error_code": 40403, "message": "Schema not found"})

    def found(self, path: list[str], body: Any) -> Any:
        server = self.server
        if path[:2] == ["schemas", "ids"]:
            return server.schemas[int(path[2]) - 1]
        subject = path[1]
        if len(path) == 4:
            schema_id = server.subjects[subject][int(path[3]) - 1]
            return self.version(subject, schema_id)
        described = {
            key: body[key] for key in ("schema", "schemaType", "references") if key in body
        }
        if len(path) == 2:
            schema_id = server.schemas.index(described) + 1 if described in server.schemas else 0
            if schema_id not in server.subjects.get(subject, ()):
                raise LookupError
            return self.version(subject, schema_id)
        schema_id = server.id_of(described)
        versions = server.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return {"id": schema_id}

    def version(self, subject: str, schema_id: int) -> dict[str, Any]:
        number = self.server.subjects[subject].index(schema_id) + 1
        described = self.server.schemas[schema_id - 1]
        return {"subject": subject, "version": number, "id": schema_id, **described}

    def send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, *args: Any) -> None:
        """Logs nothing."""


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def registry() -> Iterator[Server]:
    with serving() as server:
        yield server


PROPERTIES = {"basic.auth.user.info": LOGIN}


def theirs(registry: Server) -> Any:
    return confluent.SchemaRegistryClient({"url": registry.url, **PROPERTIES})


def context() -> Any:
    return serializing.SerializationContext("orders", serializing.MessageField.VALUE)


def test_avro_of_confluents_serializer_is_read(registry: Server) -> None:
    avro = pytest.importorskip("confluent_kafka.schema_registry.avro")
    message = avro.AvroSerializer(theirs(registry), ORDER)({"user": "a", "price": 1.5}, context())
    schema = ConfluentRegistryAvroDeserializationSchema(registry.url, properties=PROPERTIES)
    registry.requests.clear()
    for _ in range(3):
        assert schema.deserialize(message) == {"user": "a", "price": 1.5}
    assert len(registry.requests) == 1, "a schema is asked for once"
    assert pickle.loads(pickle.dumps(schema)).deserialize(message) == {"user": "a", "price": 1.5}


def test_avro_is_converted_to_the_readers_schema(registry: Server) -> None:
    wanted = json.dumps(
        {
            "type": "record",
            "name": "Order",
            "fields": [
                {"name": "user", "type": "string"},
                {"name": "currency", "type": "string", "default": "EUR"},
            ],
        }
    )
    ours = ConfluentRegistryAvroSerializationSchema("o", ORDER, registry.url, PROPERTIES)
    ours.open()
    schema = ConfluentRegistryAvroDeserializationSchema(registry.url, wanted, PROPERTIES)
    record = schema.deserialize(ours.serialize({"user": "a", "price": 1.5}))
    assert record == {"user": "a", "currency": "EUR"}


def test_avro_schemas_may_reference_others(registry: Server) -> None:
    avro = pytest.importorskip("confluent_kafka.schema_registry.avro")
    client = theirs(registry)
    client.register_schema("order", confluent.Schema(ORDER, "AVRO"))
    pair = json.dumps(
        {
            "type": "record",
            "name": "Pair",
            "fields": [{"name": "first", "type": "Order"}, {"name": "second", "type": "Order"}],
        }
    )
    refers = confluent.Schema(pair, "AVRO", [confluent.SchemaReference("Order", "order", 1)])
    record = {"first": {"user": "a", "price": 1.0}, "second": {"user": "b", "price": 2.0}}
    message = avro.AvroSerializer(client, refers)(record, context())
    schema = ConfluentRegistryAvroDeserializationSchema(registry.url, properties=PROPERTIES)
    assert schema.deserialize(message) == record


def test_confluents_deserializers_read_messages_of_opchain(registry: Server) -> None:
    avro = pytest.importorskip("confluent_kafka.schema_registry.avro")
    json_schema = pytest.importorskip("confluent_kafka.schema_registry.json_schema")
    as_avro = ConfluentRegistryAvroSerializationSchema(
        "orders-value", ORDER, registry.url, PROPERTIES
    )
    as_json = ConfluentRegistryJsonSerializationSchema(
        "json-value", ORDER_JSON, registry.url, PROPERTIES
    )
    row = Row(user="a", price=1.5)
    for schema, reader in (
        (as_avro, avro.AvroDeserializer(theirs(registry))),
        (as_json, json_schema.JSONDeserializer(ORDER_JSON, None, theirs(registry))),
    ):
        schema.open()
        for record in (row, {"user": "a", "price": 1.5}):
            assert reader(schema.serialize(record), context()) == {"user": "a", "price": 1.5}


def test_a_schema_whose_registration_is_refused_fails(registry: Server) -> None:
    properties = {**PROPERTIES, "auto.register.schemas": "false"}
    schema = ConfluentRegistryAvroSerializationSchema("new", ORDER, registry.url, properties)
    with pytest.raises(ValueError, match="does not have the schema of new"):
        schema.open()
    assert registry.subjects == {}


def test_json_is_read_and_validated_on_request(registry: Server) -> None:
    ours = ConfluentRegistryJsonSerializationSchema("o", ORDER_JSON, registry.url, PROPERTIES)
    ours.open()
    wrong = ours.serialize({"price": 1})
    plain = ConfluentRegistryJsonDeserializationSchema(registry.url, properties=PROPERTIES)
    assert plain.deserialize(wrong) == {"price": 1}
    strict = ConfluentRegistryJsonDeserializationSchema(
        registry.url, validate=True, properties=PROPERTIES
    )
    assert strict.deserialize(ours.serialize({"user": "a"})) == {"user": "a"}
    with pytest.raises(Exception, match="'user' is a required property"):
        strict.deserialize(wrong)


def test_references_of_a_json_schema_to_files_or_urls_are_not_resolved(
    registry: Server, tmp_path: Path
) -> None:
    (tmp_path / "secret.json").write_text('{"type": "string"}')
    schema = json.dumps({"$ref": (tmp_path / "secret.json").as_uri()})
    number = registry.id_of({"schema": schema, "schemaType": "JSON"})
    strict = ConfluentRegistryJsonDeserializationSchema(
        registry.url, validate=True, properties=PROPERTIES
    )
    with pytest.raises(KafkaConnectorError, match="refers to other schemas"):
        strict.deserialize(b"\0" + number.to_bytes(4, "big") + b"{}")


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"{}", "does not begin with a zero byte"),
        (b"\x01\x00\x00\x00\x01x", "does not begin with a zero byte"),
        (b"\x00\x00\x00\x00\x63x", "does not have schema 99"),
        (b"\x00\x00\x00\x00\x01x", "of the type JSON; AVRO was expected"),
    ],
)
def test_messages_without_a_matching_schema_are_malformed(
    registry: Server, message: bytes, problem: str
) -> None:
    registry.id_of({"schema": ORDER_JSON, "schemaType": "JSON"})
    schema = ConfluentRegistryAvroDeserializationSchema(registry.url, properties=PROPERTIES)
    with pytest.raises(ValueError, match=problem):
        schema.deserialize(message)


def test_an_invalid_registry_url_is_refused() -> None:
    with pytest.raises(ValueError, match=r"begins with http:// or https://"):
        ConfluentRegistryAvroDeserializationSchema("registry:8081")


def read(kafka: Kafka, topic: str, schema: Any, policy: Any = "fail") -> list[Any]:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
    source.set_bounded(KafkaOffsetsInitializer.latest()).set_value_only_deserializer(schema)
    stream = env.from_source(
        source.on_malformed(policy).build(), WatermarkStrategy.no_watermarks(), "orders"
    )
    return list(stream.execute_and_collect())


def test_avro_is_written_to_a_broker_and_read_back(kafka: Kafka, registry: Server) -> None:
    topic = kafka.topic()
    records = [{"user": f"u{number}", "price": number / 2} for number in range(100)]
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    written = ConfluentRegistryAvroSerializationSchema(
        f"{topic}-value", ORDER, registry.url, PROPERTIES
    )
    messages = KafkaRecordSerializationSchema.builder().set_topic(topic)
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.servers)
    sink.set_record_serializer(messages.set_value_serialization_schema(written).build())
    sink.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    env.from_collection(records).sink_to(sink.build())
    env.execute()
    kafka.produce(topic, [b"not avro"])
    schema = ConfluentRegistryAvroDeserializationSchema(registry.url, properties=PROPERTIES)
    assert read(kafka, topic, schema, "skip") == records
    with pytest.raises(
        MalformedMessageError, match=f"topic {topic}, partition 0, offset 100.*zero byte"
    ):
        read(kafka, topic, schema)


def test_an_error_of_the_registry_fails_the_job_and_skips_no_message(
    kafka: Kafka, registry: Server
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"\x00\x00\x00\x00\x01x"])
    login = {"basic.auth.user.info": "reader:wrong"}
    schema = ConfluentRegistryAvroDeserializationSchema(registry.url, properties=login)
    with pytest.raises(
        KafkaConnectorError, match=r"can't be asked for schema 1.*who are you"
    ) as failure:
        read(kafka, topic, schema, "skip")
    assert not isinstance(failure.value, MalformedMessageError)
    away = ConfluentRegistryAvroDeserializationSchema(
        "http://127.0.0.1:1", properties={"max.retries": 0}
    )
    with pytest.raises(KafkaConnectorError, match=r"127\.0\.0\.1:1 can't be asked for schema 1"):
        read(kafka, topic, away, "skip")
