"""Faults of three brokers: each record is written and read once, in order per partition."""

from __future__ import annotations

import resource
import threading
from typing import TYPE_CHECKING, Any

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
from opchain.runtime.connectors.kafka import outbox
from opchain.runtime.connectors.kafka.client import KafkaConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_broker import Kafka

    from opchain.runtime.testing.kafka_broker import KafkaBroker

pytestmark = pytest.mark.cluster

PARTITIONS = 3
RECORDS = [f"{number:05d}" for number in range(3000)]


@pytest.fixture(scope="module")
def three() -> Iterator[Kafka]:
    with running_kafka(
        3,
        auto_create_topics_enable="false",  # else the brokers create a deleted topic again
        broker_session_timeout_ms="3000",
        transaction_abort_timed_out_transaction_cleanup_interval_ms="500",
    ) as kafka:
        yield kafka


@pytest.fixture
def brokers(three: Kafka) -> Iterator[Kafka]:
    """All three brokers run when a test begins."""
    yield three
    for broker in three.brokers.brokers:
        if broker.process is not None and broker.process.poll() is not None:
            broker.kill()
        if broker.process is None:
            broker.start()
    three.brokers.await_ready()


def leader(kafka: Kafka, topic: str) -> KafkaBroker:
    """A broker that leads a partition and is not the controller."""
    described = kafka.admin.list_topics(topic, timeout=30).topics[topic].partitions
    nodes = {item.leader for item in described.values()}
    return next(broker for broker in kafka.brokers.brokers[1:] if broker.node in nodes)


def environment() -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    return env


def write(kafka: Kafka, topic: str, guarantee: DeliveryGuarantee, **properties: str) -> None:
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema.set_value_serialization_schema(SimpleStringSchema())
    schema.set_partitioner(lambda record, *_: int(record) % PARTITIONS)
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.servers)
    sink.set_record_serializer(schema.build()).set_delivery_guarantee(guarantee)
    for name, value in properties.items():
        sink.set_property(name.replace("_", "."), value)
    env = environment()
    stream = env.from_collection(RECORDS)
    stream.sink_to(sink.set_transactional_id_prefix(f"to-{topic}").build())
    env.execute()


def require_each_once_and_in_order(values: list[str]) -> None:
    """The values are grouped by partition."""
    assert values == [
        record for first in range(PARTITIONS) for record in RECORDS[first::PARTITIONS]
    ]


def in_mid_transaction(monkeypatch: pytest.MonkeyPatch, happens: Callable[[Any], None]) -> None:
    """Runs `happens` once, when half of the messages have reached the brokers and the rest is queued."""
    group = outbox._Sender._group
    done: list[None] = []

    def interrupted(sender: Any) -> Any:
        if not done:
            done.append(None)
            happens(sender)
        return group(sender)

    monkeypatch.setattr(outbox._Sender, "_group", interrupted)


def dies(broker: KafkaBroker) -> None:
    broker.kill()


def runs_out_of_disk(broker: KafkaBroker) -> None:
    """Every further write to a file fails. Kafka then closes the log directory, and the broker exits."""
    assert broker.process is not None
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("fault", [dies, runs_out_of_disk])
def test_a_transaction_survives_the_loss_of_a_partition_leader(
    brokers: Kafka, monkeypatch: pytest.MonkeyPatch, fault: Callable[[KafkaBroker], None]
) -> None:
    topic = brokers.topic(PARTITIONS)
    in_mid_transaction(monkeypatch, lambda _: fault(leader(brokers, topic)))
    write(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    require_each_once_and_in_order(brokers.values(topic))


def test_an_idempotent_producer_survives_the_death_of_a_partition_leader(
    brokers: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opchain.runtime.connectors.kafka import producer  # noqa: PLC0415 - used by this test only

    topic = brokers.topic(PARTITIONS)
    flush = producer.DirectWriter.flush

    def killed(writer: Any, *, end_of_input: bool) -> None:
        if end_of_input:
            leader(brokers, topic).kill()
        flush(writer, end_of_input=end_of_input)

    monkeypatch.setattr(producer.DirectWriter, "flush", killed)
    write(brokers, topic, DeliveryGuarantee.AT_LEAST_ONCE)
    require_each_once_and_in_order(brokers.values(topic))


def test_a_driver_that_wakes_in_its_transaction_after_a_takeover_is_fenced(
    brokers: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = brokers.topic(PARTITIONS)
    send = outbox._Sender.send
    staged: list[Any] = []

    def noted(sender: Any, messages: Any) -> None:
        staged[:] = messages
        send(sender, messages)

    monkeypatch.setattr(outbox._Sender, "send", noted)
    in_mid_transaction(
        monkeypatch,
        lambda old: outbox._Sender(old._name, old._properties, "'new'").send(staged),
    )
    with pytest.raises(KafkaConnectorError, match="another producer has taken over"):
        write(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE)
    require_each_once_and_in_order(brokers.values(topic))


def test_a_driver_paused_for_longer_than_its_transaction_timeout_writes_nothing(
    brokers: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = brokers.topic(PARTITIONS)

    def aborted(sender: Any) -> None:
        sender._producer.flush(10)
        brokers.await_commits(topic)  # the brokers have ended the transaction

    in_mid_transaction(monkeypatch, aborted)
    with pytest.raises(KafkaConnectorError, match=r"transaction\.timeout\.ms"):
        write(brokers, topic, DeliveryGuarantee.EXACTLY_ONCE, transaction_timeout_ms="1000")
    assert brokers.values(topic) == []


def test_a_topic_deleted_during_a_transaction_fails_the_job_and_is_named(
    brokers: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = brokers.topic(PARTITIONS)
    in_mid_transaction(monkeypatch, lambda _: brokers.delete_topic(topic))
    with pytest.raises(KafkaConnectorError, match=topic):
        write(
            brokers,
            topic,
            DeliveryGuarantee.EXACTLY_ONCE,
            delivery_timeout_ms="5000",
            default_api_timeout_ms="10000",
        )


def source(kafka: Kafka, topic: str, **properties: str) -> KafkaSource[str]:
    started = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
    for name, value in properties.items():
        started.set_property(name.replace("_", "."), value)
    # A few messages a time, so that the consumer has not fetched all before `happens` runs.
    started.set_property("max.partition.fetch.bytes", "1000")
    started.set_property("queued.min.messages", "1")
    started.set_value_only_deserializer(SimpleStringSchema())
    return started.set_bounded(KafkaOffsetsInitializer.latest()).build()


def read(source: KafkaSource[str], happens: Callable[[], None]) -> list[str]:
    """The records of a source; `happens` is called after the first batch."""
    values: list[str] = []
    planned = source.planned(1)
    try:
        for number, split in enumerate(planned.splits(1)[0]):
            for count, batch in enumerate(planned.read(split, 10)):
                values.extend(batch.values)  # type: ignore[attr-defined]
                if number == count == 0:
                    happens()
    finally:
        planned.close()
    return values


def filled(kafka: Kafka) -> str:
    topic = kafka.topic(PARTITIONS)
    for number in range(PARTITIONS):
        kafka.produce(topic, RECORDS[number::PARTITIONS], number)
    return topic


def test_a_reader_continues_when_partition_leaders_die(brokers: Kafka) -> None:
    topic = filled(brokers)
    found = read(source(brokers, topic), lambda: leader(brokers, topic).kill())
    require_each_once_and_in_order(found)


def test_a_reader_continues_after_a_pause_longer_than_its_session_timeout(brokers: Kafka) -> None:
    topic = filled(brokers)
    limits = {"session_timeout_ms": "1000", "max_poll_interval_ms": "1000", "group_id": "pauses"}
    found = read(source(brokers, topic, **limits), lambda: paused(3))
    require_each_once_and_in_order(found)


def paused(seconds: float) -> None:
    """Lets time pass, since the test is about a pause."""
    threading.Event().wait(seconds)


def test_a_reader_of_a_deleted_topic_fails_and_names_it(brokers: Kafka) -> None:
    topic = filled(brokers)
    reading = source(brokers, topic, default_api_timeout_ms="10000")
    with pytest.raises(KafkaConnectorError, match=f"topic {topic}"):
        read(reading, lambda: brokers.delete_topic(topic))


def test_a_partition_added_while_a_leader_is_down_is_read(brokers: Kafka) -> None:
    topic = filled(brokers)
    leader(brokers, topic).kill()
    brokers.add_partitions(topic, PARTITIONS + 1)
    brokers.produce(topic, ["new"], PARTITIONS)
    env = environment()
    stream = env.from_source(source(brokers, topic), WatermarkStrategy.no_watermarks(), "all")
    assert sorted(stream.execute_and_collect()) == [*RECORDS, "new"]
