"""Kafka. PyFlink: pyflink.datastream.connectors.kafka."""

from opchain.reexports import reexports
from opchain.runtime.connectors.kafka.builder import KafkaSourceBuilder
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
from opchain.runtime.connectors.kafka.source import KafkaSource

__all__ = [
    "KafkaMessage",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecordDeserializationSchema",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "MalformedMessage",
]

__getattr__ = reexports(__name__)
