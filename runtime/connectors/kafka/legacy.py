"""FlinkKafkaConsumer and FlinkKafkaProducer of Flink 1, based on KafkaSource and KafkaSink."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.kafka.client import GROUP, SERVERS
from opchain.runtime.connectors.kafka.enumerator import Subscription
from opchain.runtime.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
)
from opchain.runtime.connectors.kafka.record import Deserializer
from opchain.runtime.connectors.kafka.serializer import KafkaRecordSerializationSchema
from opchain.runtime.connectors.kafka.sink import KafkaSink
from opchain.runtime.connectors.kafka.source import COMMITS, KafkaSource
from opchain.runtime.functions.sink import DeliveryGuarantee
from opchain.runtime.functions.source_sink_functions import (
    SourceBackedFunction,
    TwoPhaseSinkFunction,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.runtime.types.serialization import DeserializationSchema, SerializationSchema
    from opchain.runtime.types.type_information import TypeInformation


class FlinkKafkaConsumerBase(SourceBackedFunction[Any]):
    """The base class of FlinkKafkaConsumer, as in PyFlink."""

    def __init__(
        self,
        topics: str | Sequence[str],
        deserialization_schema: DeserializationSchema[Any],
        properties: Mapping[str, str],
    ) -> None:
        if SERVERS not in properties:
            raise ValueError(f"FlinkKafkaConsumer: the properties need '{SERVERS}'")
        self._topics = (topics,) if isinstance(topics, str) else tuple(topics)
        self._schema = deserialization_schema
        self._properties = dict(properties)
        self._starting: KafkaOffsetsInitializer | None = None

    def as_source(self) -> KafkaSource[Any]:
        """The KafkaSource with these settings."""
        return KafkaSource(
            Subscription(topics=self._topics),
            Deserializer(self._schema),
            self._properties,
            self._starting or self._from_group(),
        )

    def set_commit_offsets_on_checkpoints(
        self, commit_on_checkpoints: bool
    ) -> FlinkKafkaConsumerBase:
        """Sets whether offsets are committed to the group when a checkpoint is complete. Default: True."""
        self._properties[COMMITS] = str(commit_on_checkpoints).lower()
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumerBase:
        """Starts at the earliest offsets."""
        self._starting = KafkaOffsetsInitializer.earliest()
        return self

    def set_start_from_latest(self) -> FlinkKafkaConsumerBase:
        """Starts at the ends of the partitions."""
        self._starting = KafkaOffsetsInitializer.latest()
        return self

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumerBase:
        """Starts in each partition at the first record with at least this timestamp, in milliseconds."""
        self._starting = KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp)
        return self

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumerBase:
        """Starts at the group's committed offsets; without them, as auto.offset.reset says. This is the default."""
        self._starting = None
        return self

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumerBase:
        """Accepted as in PyFlink: the partitions of a checkpoint are always read."""
        return self

    def get_produced_type(self) -> TypeInformation[Any]:
        """The type that the schema produces."""
        return self._schema.get_produced_type()

    def _from_group(self) -> KafkaOffsetsInitializer:
        reset = KafkaOffsetResetStrategy[
            str(self._properties.get("auto.offset.reset", "latest")).upper()
        ]
        if GROUP in self._properties:
            return KafkaOffsetsInitializer.committed_offsets(reset)
        if reset is KafkaOffsetResetStrategy.EARLIEST:
            return KafkaOffsetsInitializer.earliest()
        return KafkaOffsetsInitializer.latest()


class FlinkKafkaConsumer(FlinkKafkaConsumerBase):
    """An unbounded source for `add_source`. Deprecated: use KafkaSource.

    Args:
        topics: One or more topics.
        deserialization_schema: Converts the values of messages to records.
        properties: Properties of the consumer: `bootstrap.servers`, `group.id`, ...
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        deserialization_schema: DeserializationSchema[Any],
        properties: Mapping[str, str],
    ) -> None:
        warnings.warn(
            "FlinkKafkaConsumer is deprecated: use KafkaSource", DeprecationWarning, stacklevel=2
        )
        super().__init__(topics, deserialization_schema, properties)


class Semantic(Enum):
    """How often a record may be written. Flink: FlinkKafkaProducer.Semantic."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaProducerBase(TwoPhaseSinkFunction[Any]):
    """The base class of FlinkKafkaProducer, as in PyFlink."""

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema[Any],
        producer_config: Mapping[str, str],
        semantic: Semantic,
    ) -> None:
        if SERVERS not in producer_config:
            raise ValueError(f"FlinkKafkaProducer: the producer config needs '{SERVERS}'")
        self._builder = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(topic)
            .set_value_serialization_schema(serialization_schema)
            .set_timestamp_provider(_no_timestamp)
        )
        guarantee = DeliveryGuarantee[semantic.name]
        prefix = f"flink-kafka-producer-{topic}"
        super().__init__(KafkaSink(self._builder.build(), producer_config, guarantee, prefix))

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducerBase:
        """Accepts only False: a refused message fails the job.

        Raises:
            ValueError: It is True, which would lose messages.
        """
        if log_failures_only:
            raise ValueError(
                "FlinkKafkaProducer.set_log_failures_only(True) would lose messages that the brokers refuse; "
                "filter them out before the sink"
            )
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducerBase:
        """With AT_LEAST_ONCE: whether a checkpoint waits until the brokers have all messages. Default: True."""
        sink = self._kafka_sink()
        if not flush_on_checkpoint and sink.guarantee is DeliveryGuarantee.AT_LEAST_ONCE:
            sink.guarantee = DeliveryGuarantee.NONE
        return self

    def set_write_timestamp_to_kafka(
        self, write_timestamp_to_kafka: bool
    ) -> FlinkKafkaProducerBase:
        """Sets whether messages get the event time of their records. By default, they get the time of writing."""
        self._builder.set_timestamp_provider(None if write_timestamp_to_kafka else _no_timestamp)
        self._kafka_sink().serializer = self._builder.build()
        return self

    def _kafka_sink(self) -> KafkaSink:
        sink = self.two_phase
        assert isinstance(sink, KafkaSink)
        return sink


class FlinkKafkaProducer(FlinkKafkaProducerBase):
    """A sink for `add_sink` that writes to one topic. Deprecated: use KafkaSink.

    Args:
        topic: The topic.
        serialization_schema: Converts records to the values of messages.
        producer_config: Properties of the producer.
        kafka_producer_pool_size: Accepted as in PyFlink, but not used: no transaction is open between checkpoints.
        semantic: The delivery guarantee.
    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema[Any],
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        del kafka_producer_pool_size
        super().__init__(topic, serialization_schema, producer_config, semantic)

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """Accepted as in PyFlink, but not used: no transaction with messages can time out between checkpoints."""
        return self


def _no_timestamp(record: Any) -> None:
    """Lets Kafka set the timestamp."""
    del record
