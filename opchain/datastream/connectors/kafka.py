"""Sources and sinks for Kafka. PyFlink: pyflink.datastream.connectors.kafka."""

from opchain.reexports import reexports
from opchain.runtime.connectors.kafka.builder import KafkaSourceBuilder
from opchain.runtime.connectors.kafka.legacy import (
    FlinkKafkaConsumer,
    FlinkKafkaConsumerBase,
    FlinkKafkaProducer,
    FlinkKafkaProducerBase,
    Semantic,
)
from opchain.runtime.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from opchain.runtime.connectors.kafka.record import (
    KafkaMessage,
    KafkaRecordDeserializationSchema,
    MalformedMessage,
)
from opchain.runtime.connectors.kafka.schema_registry import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
    ConfluentRegistryJsonDeserializationSchema,
    ConfluentRegistryJsonSerializationSchema,
)
from opchain.runtime.connectors.kafka.serializer import (
    KafkaPartitioner,
    KafkaProducerMessage,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from opchain.runtime.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from opchain.runtime.connectors.kafka.source import KafkaSource

__all__ = [
    "ConfluentRegistryAvroDeserializationSchema",
    "ConfluentRegistryAvroSerializationSchema",
    "ConfluentRegistryJsonDeserializationSchema",
    "ConfluentRegistryJsonSerializationSchema",
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaProducer",
    "FlinkKafkaProducerBase",
    "KafkaMessage",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaPartitioner",
    "KafkaProducerMessage",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "MalformedMessage",
    "Semantic",
]

__getattr__ = reexports(__name__)
