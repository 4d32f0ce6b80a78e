"""Conversion of records to Kafka messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.errors import require_instance
from opchain.runtime.types.serialization import SerializationSchema, SimpleStringSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class KafkaProducerMessage(NamedTuple):
    """A message to write. None means: no key; no value, which deletes the key; Kafka's timestamp; Kafka's partition.

    Kafka: ProducerRecord.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None


class KafkaTopicSelector(ABC):
    """Chooses the topic of each record. Flink: TopicSelector."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Returns the topic of a record."""


class KafkaPartitioner(ABC):
    """Chooses the partition of each record. Flink: KafkaPartitioner (Java only)."""

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        """Called once in each subtask, before the first record."""

    @abstractmethod
    def partition(
        self,
        record: Any,
        key: bytes | None,
        value: bytes | None,
        target_topic: str,
        partitions: int,
    ) -> int:
        """Returns the number of the partition, from 0 to partitions - 1."""


class _FunctionPartitioner(KafkaPartitioner):
    def __init__(self, function: Callable[..., int]) -> None:
        self._function = function

    def partition(
        self,
        record: Any,
        key: bytes | None,
        value: bytes | None,
        target_topic: str,
        partitions: int,
    ) -> int:
        """The result of the function."""
        return self._function(record, key, value, target_topic, partitions)


class KafkaRecordSerializationSchema(ABC):
    """Converts records to messages. Use `builder()`, or write a subclass.

    Flink: KafkaRecordSerializationSchema.
    """

    def open(self, subtask: int, parallelism: int) -> None:
        """Called once in each subtask, before the first record."""

    @abstractmethod
    def to_message(
        self, record: Any, timestamp: int | None, partitions_of: Callable[[str], int]
    ) -> KafkaProducerMessage | None:
        """Returns the message for a record. None writes no message.

        Args:
            record: The record.
            timestamp: Its event time in milliseconds.
            partitions_of: Returns the number of partitions of a topic.
        """

    def to_plain_messages(
        self, records: Sequence[Any]
    ) -> tuple[str, list[bytes | None] | None, list[bytes | None]] | None:
        """Topic, keys and values of several records, if their messages have nothing else. Otherwise None.

        After an error, `to_message` is called for each record, so the error can name the record.
        """
        del records
        return None

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Returns a builder."""
        return KafkaRecordSerializationSchemaBuilder()


class _BuiltSchema(KafkaRecordSerializationSchema):
    """A schema that combines the parts of a builder."""

    def __init__(
        self,
        topic: str | KafkaTopicSelector,
        key: SerializationSchema[Any] | None,
        value: SerializationSchema[Any],
        headers: Callable[[Any], Iterable[tuple[str, bytes | None]]] | None,
        timestamp: Callable[[Any], int | None] | None,
        partitioner: KafkaPartitioner | None,
    ) -> None:
        self.topic = topic
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp = timestamp
        self.partitioner = partitioner

    def __repr__(self) -> str:
        return self.topic if isinstance(self.topic, str) else type(self.topic).__name__

    def open(self, subtask: int, parallelism: int) -> None:
        """Opens the parts."""
        self.value.open()
        if self.key is not None:
            self.key.open()
        if self.partitioner is not None:
            self.partitioner.open(subtask, parallelism)

    def to_plain_messages(
        self, records: Sequence[Any]
    ) -> tuple[str, list[bytes | None] | None, list[bytes | None]] | None:
        """Topic, keys and values, if all records have the same topic, and no headers, timestamps or partitions."""
        if self.headers or self.timestamp or self.partitioner or not isinstance(self.topic, str):
            return None
        try:
            keys = None if self.key is None else _serialized(self.key, records)
            return self.topic, keys, _serialized(self.value, records)
        except Exception:  # noqa: BLE001 - to_message raises it again, and names the record
            return None

    def to_message(
        self, record: Any, timestamp: int | None, partitions_of: Callable[[str], int]
    ) -> KafkaProducerMessage:
        """The message."""
        topic = self.topic if isinstance(self.topic, str) else self.topic.apply(record)
        key = None if self.key is None else self.key.serialize(record)
        value = self.value.serialize(record)
        partition = None
        if self.partitioner is not None:
            count = partitions_of(topic)
            partition = self.partitioner.partition(record, key, value, topic, count)
            if not isinstance(partition, int) or not 0 <= partition < count:
                raise ValueError(
                    f"the partitioner returned {partition!r} for topic {topic}, which has the partitions 0 to "
                    f"{count - 1}"
                )
        if self.timestamp is not None:
            timestamp = self.timestamp(record)
        headers = () if self.headers is None else tuple(self.headers(record))
        return KafkaProducerMessage(topic, key, value, timestamp, headers, partition)


def _serialized(schema: SerializationSchema[Any], records: Sequence[Any]) -> list[bytes | None]:
    if isinstance(schema, SimpleStringSchema) and schema.is_plain_utf_8:
        try:
            return [record.encode() for record in records]
        except (AttributeError, UnicodeError):
            pass  # the schema decides
    return list(map(schema.serialize, records))


_BUILDER = "KafkaRecordSerializationSchemaBuilder"
_A_SCHEMA = "a SerializationSchema such as SimpleStringSchema()"


class KafkaRecordSerializationSchemaBuilder:
    """Builds a KafkaRecordSerializationSchema. Required are a topic and the schema of values."""

    def __init__(self) -> None:
        self._topic: str | KafkaTopicSelector | None = None
        self._key: SerializationSchema[Any] | None = None
        self._value: SerializationSchema[Any] | None = None
        self._headers: Callable[[Any], Iterable[tuple[str, bytes | None]]] | None = None
        self._timestamp: Callable[[Any], int | None] | None = None
        self._partitioner: KafkaPartitioner | None = None

    def build(self) -> KafkaRecordSerializationSchema:
        """Returns the schema.

        Raises:
            ValueError: The topic or the schema of values is missing.
        """
        if self._topic is None or self._value is None:
            method = "set_topic" if self._topic is None else "set_value_serialization_schema"
            raise ValueError(f"KafkaRecordSerializationSchemaBuilder.build: call {method}() first")
        return _BuiltSchema(
            *(self._topic, self._key, self._value),
            *(self._headers, self._timestamp, self._partitioner),
        )

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Sets one topic for all records."""
        require_instance(topic, str, f"{_BUILDER}.set_topic", "the name of a topic")
        self._topic = topic
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Chooses the topic of each record with a function of the record, or a KafkaTopicSelector."""
        if not isinstance(topic_selector, KafkaTopicSelector):
            _require_function(topic_selector, "set_topic_selector")
            topic_selector = _FunctionSelector(topic_selector)
        self._topic = topic_selector
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema[Any]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets the schema of keys. By default, messages have no keys."""
        where = f"{_BUILDER}.set_key_serialization_schema"
        require_instance(key_serialization_schema, SerializationSchema, where, _A_SCHEMA)
        self._key = key_serialization_schema
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema[Any]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets the schema of values."""
        where = f"{_BUILDER}.set_value_serialization_schema"
        require_instance(value_serialization_schema, SerializationSchema, where, _A_SCHEMA)
        self._value = value_serialization_schema
        return self

    def set_header_provider(
        self, header_provider: Callable[[Any], Iterable[tuple[str, bytes | None]]]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets a function that returns the headers of a message: (name, bytes) pairs.

        In Flink, only the Java API has it.
        """
        _require_function(header_provider, "set_header_provider")
        self._headers = header_provider
        return self

    def set_timestamp_provider(
        self, timestamp_provider: Callable[[Any], int | None] | None
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets a function that returns the timestamp of a message in milliseconds. Not in Flink.

        By default, it is the event time of the record.
        """
        if timestamp_provider is not None:
            _require_function(timestamp_provider, "set_timestamp_provider")
        self._timestamp = timestamp_provider
        return self

    def set_partitioner(
        self, partitioner: KafkaPartitioner | Callable[..., int]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets the partitioner. By default, the hash of the key decides, as in Java's client.

        Flink: only in the Java API.

        Args:
            partitioner: A KafkaPartitioner, or a function of (record, key, value, topic, partitions).
        """
        if not isinstance(partitioner, KafkaPartitioner):
            _require_function(partitioner, "set_partitioner")
            partitioner = _FunctionPartitioner(partitioner)
        self._partitioner = partitioner
        return self


class _FunctionSelector(KafkaTopicSelector):
    def __init__(self, function: Callable[[Any], str]) -> None:
        self._function = function

    def apply(self, data: Any) -> str:
        """The result of the function."""
        return self._function(data)


def _require_function(value: object, method: str) -> None:
    if not callable(value):
        raise TypeError(f"{_BUILDER}.{method} got {value!r}; it takes a function")
