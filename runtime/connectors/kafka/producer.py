"""Sends messages with confluent-kafka's producer, and stores the first refused message."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from opchain.runtime.connectors.kafka.client import (
    KafkaConnectorError,
    advice,
    confluent_kafka,
    error_text,
    make_client,
)
from opchain.runtime.errors import add_note, short_repr
from opchain.runtime.functions.sink import BatchSinkWriter, SinkOrigin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.connectors.kafka.serializer import (
        KafkaProducerMessage,
        KafkaRecordSerializationSchema,
    )

Columns: TypeAlias = (
    "tuple[str, list[bytes | None] | None, list[bytes | None], list[int] | None, "
    "list[tuple[tuple[str, bytes | None], ...]] | None, list[int] | None]"
)
"""Messages of a topic as plain values: topic, keys, values, timestamps (0: none), headers, partitions (-1: none).

None replaces a column without values.
"""

_IN_BATCH = "_INVALID_DIFFERENT_RECORD"
_FLUSH_S = 1.0
_FULL_S = 0.01
_QUEUED = 1_000_000
"""The maximum number of queued messages. librdkafka's default of 100,000 is too small: the queue would run empty."""


def producer_settings(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The user's properties, and settings for the same partitions as with the Java producer."""
    return {
        "partitioner": "murmur2_random",
        "enable.idempotence": True,
        "queue.buffering.max.messages": _QUEUED,
        **properties,
    }


class Refused(NamedTuple):
    """A message that was not sent, and the error of confluent-kafka."""

    error: Any
    topic: str
    partition: int | None
    key: Any
    value: Any
    timestamp: tuple[int, int] | None = None


class Failures:
    """The first message that the brokers or the client refused."""

    def __init__(self) -> None:
        self.first: Refused | None = None

    def __call__(self, error: Any, message: Any) -> None:
        """Called by the producer for each message that it could not send."""
        # Messages that an abort purges, or that are in the batch of another one, have errors that are not the cause.
        if error is None or error.name().startswith("_PURGE"):
            return
        if self.first is None or self.first.error.name() == _IN_BATCH:
            place = (message.topic(), message.partition())
            self.first = Refused(error, *place, message.key(), message.value(), message.timestamp())

    def require_none(self) -> None:
        """Raises the error of the first message.

        Raises:
            KafkaException: A message was refused.
        """
        if self.first is not None:
            raise confluent_kafka().KafkaException(self.first.error)

    def explained(self, where: str) -> KafkaConnectorError:
        """The error for the user."""
        assert self.first is not None
        error, topic, partition, key, value, timestamp = self.first
        place = f"topic {topic}" if partition is None else f"topic {topic}, partition {partition}"
        # Brokers refuse a whole batch, and do not always name the message.
        batch = "the batch of " if error.name() in (_IN_BATCH, "INVALID_TIMESTAMP") else ""
        at = f", the timestamp {timestamp[1]}" if timestamp and batch else ""
        return KafkaConnectorError(
            f"{where} can't write to {place}, {batch}the message with the key {short_repr(key)}{at} and the value "
            f"{short_repr(value)}: {error.str()}{advice(error)}"
        )


def send(producer: Any, messages: Iterable[Columns], failures: Failures) -> None:
    """Passes messages to the producer. Waits while its queue is full, and stops after a refused message."""
    for columns in messages:
        _send_columns(producer, columns, failures)
        producer.poll(0)
        if failures.first is not None:
            return


def _send_columns(producer: Any, columns: Columns, failures: Failures) -> None:
    produce = producer.produce
    topic, keys, values, timestamps, headers, partitions = columns
    value = key = partition = None
    try:
        if keys is None and timestamps is None and headers is None and partitions is None:
            for value in values:
                try:
                    produce(topic, value)
                except BufferError:  # noqa: PERF203 - it costs nothing from Python 3.11 on
                    _produce_later(producer, failures, topic, value)
            return
        every = zip(
            values,
            repeat(None) if keys is None else keys,
            repeat(-1) if partitions is None else partitions,
            repeat(0) if timestamps is None else timestamps,
            repeat(None) if headers is None else headers,
            strict=False,
        )
        for value, key, partition, timestamp, own in every:
            # Positional arguments: names would take half as much time as the rest of the call. The two None are
            # callbacks.
            message: tuple[Any, ...] = (topic, value, key, partition, None, None, timestamp)
            if own:
                message = (*message, list(own))
            try:
                produce(*message)
            except BufferError:
                _produce_later(producer, failures, *message)
    except confluent_kafka().KafkaException as error:
        # The client itself refuses a message that is larger than its own limit.
        if failures.first is None:
            place = None if partition == -1 else partition
            failures.first = Refused(error.args[0], topic, place, key, value)


def _produce_later(producer: Any, failures: Failures, *message: Any) -> None:
    while failures.first is None:
        producer.poll(_FULL_S)
        try:
            producer.produce(*message)
        except BufferError:
            continue
        return


class Serializer:
    """Converts records to messages, with access to the topics' numbers of partitions."""

    def __init__(
        self, schema: KafkaRecordSerializationSchema, properties: Mapping[str, Any], where: str
    ) -> None:
        self._schema = schema
        self._properties = properties
        self._where = where
        self._partitions: dict[str, int] = {}
        self._client: Any = None

    def __call__(
        self, records: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> list[Columns]:
        """The messages for records, grouped by topic."""
        plain = self._schema.to_plain_messages(records)
        if plain is not None:
            topic, keys, values = plain
            if _are_bytes(values) and (keys is None or _are_bytes(keys)):
                return [(topic, keys, values, _times(timestamps), None, None)]
        times: Sequence[int | None] = timestamps or [None] * len(records)
        rows: dict[str, list[Any]] = {}
        for record, timestamp in zip(records, times, strict=True):
            message = self._message(record, timestamp)
            if message is not None:
                rows.setdefault(message.topic, []).append(message[1:])
        return [_columns(topic, own) for topic, own in rows.items()]

    def _message(self, record: Any, timestamp: int | None) -> KafkaProducerMessage | None:
        try:
            message = self._schema.to_message(record, timestamp, self._partitions_of)
            if message is not None:
                _check(message)
        except Exception as error:
            add_note(
                error, f"while {self._where} made a message of the record {short_repr(record)}"
            )
            raise
        return message

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
                    f"{self._where} can't ask for the partitions of topic {topic}: {error_text(error)}{advice(error)}"
                ) from error
            self._partitions[topic] = found
        return found


def _check(message: KafkaProducerMessage) -> None:
    for what, data in (("key", message.key), ("value", message.value)):
        if data is not None and not isinstance(data, (bytes, bytearray)):
            raise TypeError(
                f"the {what} of a message is {short_repr(data)} ({type(data).__name__}); a serialization schema "
                "returns bytes"
            )
    if not isinstance(message.topic, str) or not message.topic:
        raise TypeError(f"the topic of a message is {short_repr(message.topic)}; it must be a name")


def _are_bytes(column: list[Any]) -> bool:
    return set(map(type, column)) <= {bytes, type(None)}


def _times(timestamps: Sequence[int | None] | None) -> list[int] | None:
    if timestamps is None:
        return None
    known: list[Any] = list(timestamps)
    return known if None not in known and min(known, default=0) >= 0 else list(map(_time, known))


def _time(timestamp: int | None) -> int:
    return 0 if timestamp is None or timestamp < 0 else timestamp


def _columns(topic: str, rows: list[Any]) -> Columns:
    keys, values, timestamps, headers, partitions = map(list, zip(*rows, strict=True))
    return (
        topic,
        keys if any(key is not None for key in keys) else None,
        values,
        list(map(_time, timestamps)),
        headers if any(headers) else None,
        [-1 if number is None else number for number in partitions],
    )


def size_of(messages: Columns) -> int:
    """The size of keys and values in bytes."""
    _, keys, values, *_ = messages
    return sum(map(len, filter(None, values))) + sum(map(len, filter(None, keys or ())))


class DirectWriter(BatchSinkWriter[Any]):
    """Sends the records of one subtask immediately.

    Args:
        serializer: Converts records to messages.
        properties: The properties of the producer.
        origin: The sink.
        waits: Whether a checkpoint waits until the brokers have all messages.
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
        self._producer, self._reported = make_client("Producer", settings, fixed, self._where)

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Writes a batch.

        Raises:
            KafkaConnectorError: A message was refused.
        """
        send(self._producer, self._serializer(values, timestamps), self._failures)
        self._require_delivered()

    def flush(self, *, end_of_input: bool) -> None:
        """Waits until the brokers have all messages, if `waits` is set.

        Raises:
            KafkaConnectorError: A message was refused, or was not delivered in time.
        """
        if self._waits or end_of_input:
            while self._producer.flush(_FLUSH_S):
                self._require_delivered()
        self._require_delivered()

    def _require_delivered(self) -> None:
        if self._failures.first is not None:
            error = self._failures.explained(self._where)
            reason = self._reported.reason()
            raise KafkaConnectorError(f"{error}{reason}") if reason else error
