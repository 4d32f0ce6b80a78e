"""Kafka: not supported. PyFlink: pyflink.datastream.connectors.kafka."""

from __future__ import annotations

from typing import NoReturn

from opchain.runtime.connectors.refused_connector import refuse_name

_NAMES = frozenset(
    {
        "FlinkKafkaConsumer",
        "FlinkKafkaProducer",
        "KafkaOffsetResetStrategy",
        "KafkaOffsetsInitializer",
        "KafkaRecordSerializationSchema",
        "KafkaRecordSerializationSchemaBuilder",
        "KafkaSink",
        "KafkaSinkBuilder",
        "KafkaSource",
        "KafkaSourceBuilder",
        "KafkaTopicPartition",
        "KafkaTopicSelector",
        "Semantic",
    }
)


def __getattr__(name: str) -> NoReturn:
    refuse_name(name, _NAMES, __name__)
