"""Sends messages with the library's producer, and keeps the first one that was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from opchain.runtime.connectors.kafka.client import (
    KafkaConnectorError,
    advice,
    confluent_kafka,
    make_client,
    said,
)
from opchain.runtime.errors import add_note, short_repr
from opchain.runtime.functions.sink import SinkOrigin, SinkWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.connectors.kafka.serializer import KafkaRecordSerializationSchema

Wire: TypeAlias = (
    "tuple[str, bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...], int]"
)
"""A message in plain values: topic, key, value, timestamp (0: none), headers, partition (-1: none)."""

_FLUSH_S = 1.0


def producer_settings(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The user's properties, and what makes partitions equal to those of Java's producer."""
    return {"partitioner": "murmur2_random", "enable.idempotence": True, **properties}


class Failures:
    """The first message that the brokers refused, as the producer tells it."""

    def __init__(self) -> None:
        self.first: tuple[Any, Any] | None = None

    def __call__(self, error: Any, message: Any) -> None:
        """Hears of a message; the producer tells only of those that failed."""
        # Those that an abort purges say nothing of the cause.
        if error is not None and self.first is None and not error.name().startswith("_PURGE"):
            self.first = (error, message)

    def explained(self, where: str) -> KafkaConnectorError:
        """The error for the user."""
        assert self.first is not None
        error, message = self.first
        return KafkaConnectorError(
            f"{where} can't write to topic {message.topic()}, partition {message.partition()}, the message with the "
            f"key {short_repr(message.key())} and the value {short_repr(message.value())}: {error.str()}{advice(error)}"
        )


def send(producer: Any, messages: Iterable[Wire], failures: Failures) -> None:
    """Hands messages to the producer; waits where its queue is full, and ends where one was refused."""
    for message in messages:
        while not _is_queued(producer, message):
            producer.poll(0.1)
            if failures.first is not None:
                return
    producer.poll(0)


def _is_queued(producer: Any, message: Wire) -> bool:
    topic, key, value, timestamp, headers, partition = message
    try:
        if headers:
            producer.produce(
                topic, value, key, partition, timestamp=timestamp, headers=list(headers)
            )
        else:
            producer.produce(topic, value, key, partition, timestamp=timestamp)
    except BufferError:
        return False
    return True


class Serializer:
    """Makes messages of records, with the topics' numbers of partitions at hand."""

    def __init__(
        self, schema: KafkaRecordSerializationSchema, properties: Mapping[str, Any], where: str
    ) -> None:
        self._schema = schema
        self._properties = properties
        self._where = where
        self._partitions: dict[str, int] = {}
        self._client: Any = None

    def __call__(self, record: Any, timestamp: int | None) -> Wire | None:
        """The message, None for a record that is not written."""
        try:
            message = self._schema.to_message(record, timestamp, self._partitions_of)
            if message is None:
                return None
            return _wire(message)
        except Exception as error:
            add_note(
                error, f"while {self._where} made a message of the record {short_repr(record)}"
            )
            raise

    def _partitions_of(self, topic: str) -> int:
        found = self._partitions.get(topic)
        if found is None:
            if self._client is None:
                self._client, _ = make_client("AdminClient", self._properties, {}, self._where)
            library = confluent_kafka()
            try:
                described = self._client.describe_topics(library.TopicCollection([topic]))
                found = len(described[topic].result().partitions)
            except library.KafkaException as error:
                raise KafkaConnectorError(
                    f"{self._where} can't ask for the partitions of topic {topic}: {said(error)}{advice(error)}"
                ) from error
            self._partitions[topic] = found
        return found


def _wire(message: Any) -> Wire:
    topic, key, value, timestamp, headers, partition = message
    for what, data in (("key", key), ("value", value)):
        if data is not None and not isinstance(data, (bytes, bytearray)):
            raise TypeError(
                f"the {what} of a message is {short_repr(data)} ({type(data).__name__}); a serialization schema "
                "returns bytes"
            )
    if not isinstance(topic, str) or not topic:
        raise TypeError(f"the topic of a message is {short_repr(topic)}; it must be a name")
    return (
        *(topic, key, value, timestamp if timestamp is not None and timestamp > 0 else 0),
        *(headers, -1 if partition is None else partition),
    )


class DirectWriter(SinkWriter[Any]):
    """Sends the records of one subtask as they come.

    Args:
        serializer: Makes messages.
        properties: The producer's.
        origin: The sink.
        waits: Whether a checkpoint waits for the brokers to have everything.
    """

    def __init__(
        self,
        serializer: Serializer,
        properties: Mapping[str, Any],
        origin: SinkOrigin,
        *,
        waits: bool,
    ) -> None:
        self._serializer = serializer
        self._where = origin.where
        self._waits = waits
        self._failures = Failures()
        fixed = {"on_delivery": self._failures, "delivery.report.only.error": True}
        settings = producer_settings(properties)
        self._producer, self._heard = make_client("Producer", settings, fixed, self._where)

    def write(self, value: Any, timestamp: int | None) -> None:
        """Takes one record."""
        self.write_batch([value], [timestamp])

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Takes a batch.

        Raises:
            KafkaConnectorError: A message was refused.
        """
        serializer = self._serializer
        times = [None] * len(values) if timestamps is None else timestamps
        made = map(serializer, values, times)
        send(self._producer, (item for item in made if item is not None), self._failures)
        self._require_delivered()

    def flush(self, *, end_of_input: bool) -> None:
        """Waits until the brokers have everything, if that was promised.

        Raises:
            KafkaConnectorError: A message was refused, or could not be delivered in time.
        """
        if self._waits or end_of_input:
            while self._producer.flush(_FLUSH_S):
                self._require_delivered()
        self._require_delivered()

    def _require_delivered(self) -> None:
        if self._failures.first is not None:
            error = self._failures.explained(self._where)
            reason = self._heard.reason()
            raise KafkaConnectorError(f"{error}{reason}") if reason else error
