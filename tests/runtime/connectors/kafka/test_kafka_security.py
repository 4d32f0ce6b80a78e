"""Source and sink with a broker that requires TLS and a login (SASL_SSL, SCRAM)."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from kafka_broker import running_kafka

from opchain.common import Configuration, WatermarkStrategy
from opchain.common.serialization import SimpleStringSchema
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from opchain.runtime.connectors.kafka.client import KafkaConnectorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_broker import Kafka

pytestmark = pytest.mark.full

USER, PASSWORD = "alice", "alice's-secret"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the key store of a broker, and its certificate as a PEM file."""
    if shutil.which("keytool") is None:
        pytest.skip("needs keytool, which comes with Java")
    folder = tmp_path_factory.mktemp("certificate")
    store = ["-keystore", str(folder / "broker.p12"), "-storepass", "changeit", "-alias", "broker"]
    make = ["keytool", "-genkeypair", *store, "-keyalg", "RSA", "-dname", "CN=broker"]
    names = ["-ext", "SAN=IP:127.0.0.1,DNS:localhost", "-validity", "2"]
    subprocess.run([*make, *names], check=True, capture_output=True)
    export = ["keytool", "-exportcert", "-rfc", *store, "-file", str(folder / "broker.pem")]
    subprocess.run(export, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def secured(certificate: Path) -> Iterator[Kafka]:
    """A broker with a second listener that requires TLS and SCRAM."""
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_SSL",
        "listener.name.login.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.login.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
        "listener.name.login.ssl.keystore.location": str(certificate / "broker.p12"),
        "listener.name.login.ssl.keystore.password": "changeit",
    }
    with running_kafka(**settings) as kafka:
        from confluent_kafka.admin import (  # noqa: PLC0415 - it may be missing
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialUpsertion,
        )

        mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        user = UserScramCredentialUpsertion(USER, mechanism, PASSWORD.encode())
        kafka.admin.alter_user_scram_credentials([user])[USER].result()
        yield kafka


def properties(kafka: Kafka, certificate: Path, **changed: str) -> dict[str, str]:
    """The properties of a program for Java's client."""
    given = {
        "bootstrap.servers": kafka.brokers.login_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM} username="{USER}" password="{PASSWORD}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate / "broker.pem"),
        "default.api.timeout.ms": "10000",
    }
    return given | {name.replace("_", "."): value for name, value in changed.items()}


def environment() -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def copied(kafka: Kafka, given: dict[str, str], guarantee: DeliveryGuarantee) -> list[str]:
    """Copies a topic with the client properties; returns what another client reads from the copy."""
    origin, target = kafka.topic(), kafka.topic()
    kafka.produce(origin, ["a", "b"])
    source = KafkaSource.builder().set_topics(origin).set_properties(given)
    source.set_value_only_deserializer(SimpleStringSchema())
    schema = KafkaRecordSerializationSchema.builder().set_topic(target)
    schema.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_record_serializer(schema.build())
    for name, value in given.items():
        sink.set_property(name, value)
    sink.set_delivery_guarantee(guarantee).set_transactional_id_prefix(target)
    env = environment()
    bounded = source.set_bounded(KafkaOffsetsInitializer.latest()).build()
    env.from_source(bounded, WatermarkStrategy.no_watermarks(), "all").sink_to(sink.build())
    env.execute()
    return kafka.values(target)


@pytest.mark.parametrize(
    "guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE]
)
def test_a_job_logs_in_over_tls(
    secured: Kafka, certificate: Path, guarantee: DeliveryGuarantee
) -> None:
    assert copied(secured, properties(secured, certificate), guarantee) == ["a", "b"]


def refused(kafka: Kafka, given: dict[str, str], problem: str) -> None:
    """Requires that source and sink fail, that both give the reason, and that no error shows the password."""
    source = KafkaSource.builder().set_topics(kafka.topic()).set_properties(given)
    source.set_value_only_deserializer(SimpleStringSchema())
    env = environment()
    bounded = source.set_bounded(KafkaOffsetsInitializer.latest()).build()
    stream = env.from_source(bounded, WatermarkStrategy.no_watermarks(), "all")
    with pytest.raises(KafkaConnectorError, match=problem) as failure:
        list(stream.execute_and_collect())
    schema = KafkaRecordSerializationSchema.builder().set_topic(kafka.topic())
    schema.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_record_serializer(schema.build())
    for name, value in given.items():
        sink.set_property(name, value)
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("no")
    env = environment()
    env.from_collection(["a"]).sink_to(sink.build())
    with pytest.raises(KafkaConnectorError, match=problem) as other:
        env.execute()
    for error in (failure.value, other.value):
        assert "secret" not in str(error)


def test_a_wrong_password_is_refused(secured: Kafka, certificate: Path) -> None:
    login = f'{SCRAM} username="{USER}" password="wrong-secret";'
    given = properties(secured, certificate, sasl_jaas_config=login)
    refused(secured, given, r"uthentication.*: check sasl\.mechanism")


def test_a_mechanism_that_the_broker_does_not_support_is_refused(
    secured: Kafka, certificate: Path
) -> None:
    given = properties(secured, certificate, sasl_mechanism="PLAIN")
    refused(secured, given, r"PLAIN.*: check sasl\.mechanism")


def test_an_untrusted_certificate_is_refused(secured: Kafka, certificate: Path) -> None:
    given = properties(secured, certificate)
    del given["ssl.truststore.location"], given["ssl.truststore.type"]
    refused(secured, given, r"certificate.*: check security\.protocol and the ssl\.\* properties")


def test_a_client_without_tls_is_refused(secured: Kafka, certificate: Path) -> None:
    given = properties(secured, certificate, security_protocol="SASL_PLAINTEXT")
    refused(secured, given, r"check .*security\.protocol")
