"""KafkaSink: writes records to topics; exactly once with an outbox, otherwise immediately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.kafka.client import SERVERS, kafka_datasets
from opchain.runtime.connectors.kafka.serializer import KafkaRecordSerializationSchema
from opchain.runtime.errors import require_instance
from opchain.runtime.functions.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, origin_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.runtime.functions.function import RuntimeContext

_MAX_PREFIX_BYTES = 64_000


class KafkaSink(Sink[Any]):
    """A sink for `sink_to`. Created by `KafkaSink.builder()`. Flink: KafkaSink.

    - NONE: messages are sent immediately. A failure may lose or repeat messages.
    - AT_LEAST_ONCE: a checkpoint waits until the brokers have all messages. A failure may repeat messages.
    - EXACTLY_ONCE: messages are sent in a transaction when their checkpoint is complete; see `outbox`.
    """

    def __init__(
        self,
        serializer: KafkaRecordSerializationSchema,
        properties: Mapping[str, Any],
        guarantee: DeliveryGuarantee,
        prefix: str | None,
        staging: str | None = None,
    ) -> None:
        self.serializer = serializer
        self.properties = dict(properties)
        self.guarantee = guarantee
        self.prefix = prefix
        self.staging = staging
        self._senders: dict[str, Any] = {}  # on the driver, kept from commit to commit

    def __getstate__(self) -> dict[str, Any]:
        """Omits connections."""
        return {**self.__dict__, "_senders": {}}

    def __repr__(self) -> str:
        return f"KafkaSink({self.serializer!r}, {self.guarantee.name})"

    @property
    def topics(self) -> str:
        """The topic, or the name of the class that chooses topics, for plans."""
        return repr(self.serializer)

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The topic, for lineage. Empty if a function chooses topics."""
        topic = getattr(self.serializer, "topic", None)
        return kafka_datasets(self.properties, [topic] if isinstance(topic, str) else [])

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Returns a builder."""
        return KafkaSinkBuilder()

    def get_transformer(self) -> None:
        """Always None: the sink itself chooses topics. In PyFlink, an operator in front of the sink does."""

    @property
    def has_committer(self) -> bool:
        """Always True, as in Flink's plan."""
        return True

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:
        """The writer of one subtask."""
        from opchain.runtime.connectors.kafka.outbox import OutboxWriter  # noqa: PLC0415 - few jobs write to Kafka
        from opchain.runtime.connectors.kafka.producer import (  # noqa: PLC0415 - likewise
            DirectWriter,
            Serializer,
        )

        origin = origin_of(context)
        subtask = context.get_index_of_this_subtask()
        self.serializer.open(subtask, context.get_number_of_parallel_subtasks())
        serializer = Serializer(self.serializer, self.properties, origin.where)
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            staging = self.staging or origin.staging
            assert self.prefix is not None
            return OutboxWriter(serializer, self.properties, origin, staging, self.prefix)
        waits = self.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
        return DirectWriter(serializer, self.properties, origin, waits=waits)

    def create_committer(self) -> Committer | None:
        """The committer, which sends the outbox. None without an outbox."""
        if self.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return None
        from opchain.runtime.connectors.kafka.outbox import OutboxCommitter  # noqa: PLC0415 - few jobs write to Kafka

        assert self.prefix is not None
        return OutboxCommitter(self.properties, self.prefix, self.staging, self._senders)


class KafkaSinkBuilder:
    """Builds a KafkaSink. Flink: KafkaSinkBuilder.

    Required are the brokers and the record serializer; for EXACTLY_ONCE also the prefix of the transactional id.
    """

    def __init__(self) -> None:
        self._properties: dict[str, Any] = {}
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None
        self._staging: str | None = None

    def build(self) -> KafkaSink:
        """Returns the sink.

        Raises:
            ValueError: A required setting is missing.
        """
        if SERVERS not in self._properties:
            raise ValueError("KafkaSinkBuilder.build: call set_bootstrap_servers() first")
        if self._serializer is None:
            raise ValueError("KafkaSinkBuilder.build: call set_record_serializer() first")
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and self._prefix is None:
            raise ValueError(
                "KafkaSinkBuilder.build: DeliveryGuarantee.EXACTLY_ONCE needs set_transactional_id_prefix(): choose a "
                "prefix that no other sink of the Kafka cluster uses"
            )
        return KafkaSink(
            self._serializer, self._properties, self._guarantee, self._prefix, self._staging
        )

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Sets the brokers: `host:port,host:port`."""
        return self.set_property(SERVERS, bootstrap_servers)

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Sets the delivery guarantee; NONE by default."""
        where = "KafkaSinkBuilder.set_delivery_guarantee"
        require_instance(delivery_guarantee, DeliveryGuarantee, where, "a DeliveryGuarantee")
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Sets the prefix of the transactional id, and of the group that stores the sink's note."""
        if not isinstance(transactional_id_prefix, str) or not (
            0 < len(transactional_id_prefix.encode()) <= _MAX_PREFIX_BYTES
        ):
            raise ValueError(
                f"KafkaSinkBuilder.set_transactional_id_prefix got {transactional_id_prefix!r}; it takes a text of at "
                f"most {_MAX_PREFIX_BYTES} bytes"
            )
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(
        self, record_serializer: KafkaRecordSerializationSchema
    ) -> KafkaSinkBuilder:
        """Sets the schema that converts records to messages."""
        kind, where = KafkaRecordSerializationSchema, "KafkaSinkBuilder.set_record_serializer"
        require_instance(record_serializer, kind, where, "a KafkaRecordSerializationSchema")
        self._serializer = record_serializer
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Sets a property of the Kafka producer. Names of the Java client and of librdkafka are accepted."""
        require_instance(key, str, "KafkaSinkBuilder.set_property", "a name")
        self._properties[key] = value
        return self

    def set_staging_directory(self, url: str) -> KafkaSinkBuilder:
        """Sets the folder for uncommitted messages, with EXACTLY_ONCE. Not in Flink.

        It is a path or URL that all machines can access. The default is the checkpoint directory. A bounded job keeps
        messages in the driver's memory.
        """
        self._staging = url
        return self
