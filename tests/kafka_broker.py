"""A Kafka broker of the tests' own: Apache Kafka in KRaft mode, which Maven downloads once."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.testing.kafka_broker import KAFKA, ServerUnavailableError, kafka_brokers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.testing.kafka_broker import KafkaBrokers


@dataclass
class Kafka:
    """Running brokers, and another client than opchain's to write and to read back with."""

    brokers: KafkaBrokers
    topics: list[str] = field(default_factory=list)

    @property
    def servers(self) -> str:
        return self.brokers.bootstrap_servers

    @cached_property
    def admin(self) -> Any:
        return _admin(self.servers)

    def topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """Creates a topic with a unique name."""
        from confluent_kafka.admin import NewTopic  # noqa: PLC0415 - it may be missing

        name = name or f"topic-{uuid.uuid4().hex[:8]}"
        new = NewTopic(name, num_partitions=partitions, config=config)
        self.admin.create_topics([new])[name].result()
        return name

    def delete_topic(self, name: str) -> None:
        """Deletes a topic. A producer that writes to it may have the broker create another one at once."""
        deleted = _topic_id(self.admin, name)
        self.admin.delete_topics([name])[name].result()
        self._await(lambda client: _topic_id(client, name) != deleted, f"{name} is still there")

    def add_partitions(self, name: str, total: int) -> None:
        from confluent_kafka.admin import NewPartitions  # noqa: PLC0415 - it may be missing

        self.admin.create_partitions([NewPartitions(name, total)])[name].result()
        self._await(
            lambda client: len(client.list_topics(timeout=30).topics[name].partitions) == total,
            f"{name} has not {total} partitions",
        )

    def _await(self, is_done: Callable[[Any], bool], problem: str) -> None:
        """Waits until each running broker knows what the controller has done. It answers before."""
        for broker in self.brokers.brokers:
            ends_at = time.monotonic() + 60
            while broker.process is not None:
                # A client asks any broker that it knows: a new one knows this one only.
                client = _admin(f"127.0.0.1:{broker.port}")
                if is_done(client):
                    break
                assert time.monotonic() < ends_at, f"broker {broker.node}: {problem}"
                client.poll(0.1)

    def delete_records(self, name: str, partition: int, before: int) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - it may be missing

        place = TopicPartition(name, partition, before)
        self.admin.delete_records([place])[place].result()

    def produce(self, topic: str, values: Sequence[Any], partition: int = 0, **more: Any) -> None:
        """Writes values, as text unless they are bytes."""
        from confluent_kafka import Producer  # noqa: PLC0415 - it may be missing

        producer = Producer({"bootstrap.servers": self.servers})
        errors: list[Any] = []

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                errors.append(error)

        for value in values:
            data = value if value is None or isinstance(value, bytes) else str(value).encode()
            producer.produce(topic, data, partition=partition, on_delivery=delivered, **more)
        assert producer.flush(30) == 0
        assert not errors

    def transaction(self, topic: str, values: Sequence[Any], end: str) -> Any:
        """Writes values in a transaction that is committed, aborted, or left open."""
        from confluent_kafka import Producer  # noqa: PLC0415 - it may be missing

        settings = {"bootstrap.servers": self.servers, "transactional.id": uuid.uuid4().hex}
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, str(value).encode(), partition=0)
        assert producer.flush(30) == 0
        if end != "open":
            getattr(producer, f"{end}_transaction")(30)
        return producer

    def await_commits(self, topic: str) -> None:
        """Waits until no transaction holds readers back: brokers end a committed one a little later."""
        from confluent_kafka import (  # noqa: PLC0415 - it may be missing
            IsolationLevel,
            KafkaException,
            TopicPartition,
        )
        from confluent_kafka.admin import OffsetSpec  # noqa: PLC0415 - likewise

        described = self.admin.list_topics(topic, timeout=30).topics[topic]
        places = {
            TopicPartition(topic, number): OffsetSpec.latest() for number in described.partitions
        }

        ends_at = time.monotonic() + 60

        def ends(level: Any) -> list[int]:
            while True:
                found = self.admin.list_offsets(places, isolation_level=level)
                try:
                    return [found[place].result().offset for place in places]
                except KafkaException as error:
                    # The leader of a new topic may not know yet that it leads.
                    name = error.args[0].name()
                    if name != "NOT_LEADER_FOR_PARTITION" or time.monotonic() > ends_at:
                        raise

        while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
            assert time.monotonic() < ends_at, f"a transaction of {topic} stays open"

    def messages(
        self, topic: str, isolation: str = "read_committed", *, is_open: bool = False
    ) -> list[Any]:
        """All messages, partition after partition, as the broker has them.

        `is_open` says that a transaction is open, and is to stay so.
        """
        from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415 - it may be missing

        if not is_open:
            self.await_commits(topic)
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "reads-back",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        found: list[Any] = []
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        for number in sorted(partitions):
            consumer.assign([TopicPartition(topic, number, 0)])
            while True:
                message = consumer.poll(30)
                assert message is not None, f"{topic} could not be read"
                if message.error() is not None:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    break
                found.append(message)
        consumer.close()
        return found

    def values(
        self, topic: str, isolation: str = "read_committed", *, is_open: bool = False
    ) -> list[str]:
        found = self.messages(topic, isolation, is_open=is_open)
        return [message.value().decode() for message in found]

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets that a group has committed."""
        from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415 - it may be missing

        wanted = [
            TopicPartition(name, number)
            for name, topic in self.admin.list_topics(timeout=30).topics.items()
            for number in topic.partitions
            if not name.startswith("__")
        ]
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        found = consumer.committed(wanted, timeout=60)
        consumer.close()
        return {(item.topic, item.partition): item.offset for item in found if item.offset >= 0}


def _topic_id(admin: Any, name: str) -> str | None:
    from confluent_kafka import KafkaException, TopicCollection  # noqa: PLC0415 - it may be missing

    try:
        return str(admin.describe_topics(TopicCollection([name]))[name].result().topic_id)
    except KafkaException as error:
        if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
            raise
        return None


def _admin(servers: str) -> Any:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - it may be missing

    silent = logging.Logger("silent", logging.CRITICAL + 1)  # noqa: LOG001 - no one else has it
    return AdminClient({"bootstrap.servers": servers}, logger=silent)


@contextmanager
def running_kafka(count: int = 1, **properties: str) -> Iterator[Kafka]:
    """Brokers until the block ends; skips the test where there can be none."""
    pytest.importorskip("confluent_kafka", reason="needs pip install 'opchain[kafka]'")
    try:
        KAFKA.install()
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="opchain-kafka-"))
    settings = {name.replace("_", "."): value for name, value in properties.items()}
    try:
        with kafka_brokers(folder, count=count, properties=settings) as brokers:
            yield Kafka(brokers)
    finally:
        shutil.rmtree(folder)
