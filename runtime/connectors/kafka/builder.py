"""KafkaSourceBuilder, with PyFlink's methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.runtime.connectors.kafka.client import GROUP, SERVERS
from opchain.runtime.connectors.kafka.enumerator import Subscription
from opchain.runtime.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from opchain.runtime.connectors.kafka.record import Deserializer, KafkaRecordDeserializationSchema
from opchain.runtime.connectors.kafka.source import Admission, KafkaSource
from opchain.runtime.errors import require_at_least, require_instance
from opchain.runtime.files.malformed import checked_policy
from opchain.runtime.time import Duration
from opchain.runtime.types.serialization import DeserializationSchema
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opchain.runtime.connectors.kafka.record import OnMalformedMessage

V = TypeVar("V")


class KafkaSourceBuilder(Generic[T]):
    """Builds a KafkaSource. Flink: KafkaSourceBuilder.

    Required are the brokers, the topics or partitions, and the deserializer.
    """

    def __init__(self) -> None:
        self._subscription: Subscription | None = None
        self._properties: dict[str, Any] = {}
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._is_bounded = False
        self._schema: DeserializationSchema[T] | KafkaRecordDeserializationSchema[T] | None = None
        self._malformed: OnMalformedMessage = "fail"
        self._admission = Admission()

    def build(self) -> KafkaSource[T]:
        """Returns the source.

        Raises:
            ValueError: A required setting is missing.
        """
        for value, method in (
            (self._properties.get(SERVERS), "set_bootstrap_servers"),
            (self._subscription, "set_topics"),
            (self._schema, "set_value_only_deserializer"),
        ):
            if value is None:
                raise ValueError(f"KafkaSourceBuilder.build: call {method}() first")
        assert self._subscription is not None
        assert self._schema is not None
        return KafkaSource(
            self._subscription,
            Deserializer(self._schema, self._malformed),
            self._properties,
            self._starting,
            self._stopping,
            is_bounded=self._is_bounded,
            admission=self._admission,
        )

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder[T]:
        """Sets the brokers: `host:port,host:port`."""
        return self.set_property(SERVERS, bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder[T]:
        """Sets the consumer group. Offsets are committed for it when a checkpoint is complete."""
        return self.set_property(GROUP, group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder[T]:
        """Reads these topics, which must exist."""
        if not topics or not all(isinstance(topic, str) for topic in topics):
            raise TypeError(
                f"KafkaSourceBuilder.set_topics got {topics!r}; it takes names of topics"
            )
        return self._subscribe(Subscription(topics=tuple(dict.fromkeys(topics))))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder[T]:
        """Reads all topics whose full name matches a regular expression (Python's), including topics created later."""
        where = "KafkaSourceBuilder.set_topic_pattern"
        require_instance(topic_pattern, str, where, "a regular expression")
        return self._subscribe(Subscription(pattern=topic_pattern))

    def set_partitions(self, partitions: Collection[KafkaTopicPartition]) -> KafkaSourceBuilder[T]:
        """Reads only these partitions."""
        if not partitions or not all(isinstance(item, KafkaTopicPartition) for item in partitions):
            raise TypeError(
                f"KafkaSourceBuilder.set_partitions got {partitions!r}; it takes a set of KafkaTopicPartition"
            )
        return self._subscribe(Subscription(partitions=tuple(sorted(set(partitions)))))

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder[T]:
        """Sets the first offsets for a job that starts without a checkpoint. Default: the earliest offsets."""
        _require_initializer(starting_offsets_initializer, "set_starting_offsets")
        self._starting = starting_offsets_initializer
        return self

    def set_unbounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder[T]:
        """Stops at these offsets. The source still counts as unbounded."""
        _require_initializer(stopping_offsets_initializer, "set_unbounded")
        self._stopping, self._is_bounded = stopping_offsets_initializer, False
        return self

    def set_bounded(
        self, stopping_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder[T]:
        """Stops at these offsets, as a bounded source. The offsets are resolved when the job starts."""
        _require_initializer(stopping_offsets_initializer, "set_bounded")
        self._stopping, self._is_bounded = stopping_offsets_initializer, True
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema[V]
    ) -> KafkaSourceBuilder[V]:
        """Converts the values of messages to records."""
        where = "KafkaSourceBuilder.set_value_only_deserializer"
        wanted = "a DeserializationSchema such as SimpleStringSchema()"
        require_instance(deserialization_schema, DeserializationSchema, where, wanted)
        return self._of(deserialization_schema)

    def set_deserializer(
        self, record_deserializer: KafkaRecordDeserializationSchema[V]
    ) -> KafkaSourceBuilder[V]:
        """Converts whole messages to records: key, value, headers, topic, partition, offset and timestamp.

        In Flink, only the Java API has this method.
        """
        kind, where = KafkaRecordDeserializationSchema, "KafkaSourceBuilder.set_deserializer"
        require_instance(record_deserializer, kind, where, "a KafkaRecordDeserializationSchema")
        return self._of(record_deserializer)

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder[T]:
        """Sets the prefix of the client id, which appears in logs and quotas of the brokers."""
        return self.set_property("client.id", prefix)

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder[T]:
        """Sets a property of the Kafka consumer. Names of the Java client and of librdkafka are accepted."""
        require_instance(key, str, "KafkaSourceBuilder.set_property", "the name of a property")
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder[T]:
        """Sets several properties."""
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def on_malformed(self, policy: OnMalformedMessage) -> KafkaSourceBuilder[T]:
        """Sets the policy for messages that cannot be deserialized. By default the job fails. Not in Flink.

        Args:
            policy: "fail" stops the job with an error that names topic, partition and offset; "skip" continues; an
                OutputTag sends a MalformedMessage to this side output of the source's stream and continues. The last
                two count such messages in the source's metric `numRecordsInErrors`.
        """
        self._malformed = checked_policy(policy)  # type: ignore[assignment]  # the tag is of our class
        return self

    def set_max_records_per_epoch(self, records: int) -> KafkaSourceBuilder[T]:
        """Sets the maximum number of records per epoch of an unbounded job; 1,000,000 by default. Not in Flink."""
        require_at_least(1, records, "KafkaSourceBuilder.set_max_records_per_epoch")
        self._admission = self._admission._replace(records=records)
        return self

    def set_max_bytes_per_epoch(self, size_bytes: int) -> KafkaSourceBuilder[T]:
        """Sets the approximate maximum of bytes per epoch, estimated from the next messages. Not in Flink."""
        require_at_least(1, size_bytes, "KafkaSourceBuilder.set_max_bytes_per_epoch")
        self._admission = self._admission._replace(size_bytes=size_bytes)
        return self

    def set_max_time_per_epoch(self, time: Duration) -> KafkaSourceBuilder[T]:
        """Sets the approximate maximum time per epoch, estimated from earlier epochs. Not in Flink."""
        require_instance(time, Duration, "KafkaSourceBuilder.set_max_time_per_epoch", "a Duration")
        time_ms = time.to_millis()
        require_at_least(1, time_ms, "KafkaSourceBuilder.set_max_time_per_epoch")
        self._admission = self._admission._replace(time_ms=time_ms)
        return self

    def _of(
        self, schema: DeserializationSchema[V] | KafkaRecordDeserializationSchema[V]
    ) -> KafkaSourceBuilder[V]:
        builder: KafkaSourceBuilder[Any] = self
        builder._schema = schema
        return builder

    def _subscribe(self, subscription: Subscription) -> KafkaSourceBuilder[T]:
        if self._subscription is not None:
            raise ValueError(
                f"KafkaSourceBuilder: the source reads {self._subscription} already; call one of set_topics, "
                "set_topic_pattern and set_partitions, once"
            )
        self._subscription = subscription
        return self


def _require_initializer(value: object, method: str) -> None:
    wanted = "a KafkaOffsetsInitializer"
    require_instance(value, KafkaOffsetsInitializer, f"KafkaSourceBuilder.{method}", wanted)
