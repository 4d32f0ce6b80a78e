"""Dynamic Kafka: not supported. PyFlink: pyflink.datastream.connectors.dynamic_kafka."""

from __future__ import annotations

from typing import NoReturn

from opchain.runtime.connectors.refused_connector import refuse_name

_NAMES = frozenset(
    {
        "DynamicKafkaSource",
        "DynamicKafkaSourceBuilder",
        "KafkaMetadataService",
        "KafkaRecordDeserializationSchema",
        "KafkaStreamSetSubscriber",
        "KafkaStreamSubscriber",
        "SingleClusterTopicMetadataService",
        "StreamPatternSubscriber",
    }
)


def __getattr__(name: str) -> NoReturn:
    refuse_name(name, _NAMES, __name__)
