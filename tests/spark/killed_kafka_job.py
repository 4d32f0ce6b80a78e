"""A streaming job to be killed: counts records of a Kafka topic by key, and writes counts to another topic."""

from __future__ import annotations

import sys

from opchain.common import Configuration, SerializationSchema, SimpleStringSchema, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)


class Word(SerializationSchema[str]):
    """The word of "word count": all counts of a word are written to one partition, in order."""

    def serialize(self, element: str) -> bytes:
        return element.split(maxsplit=1)[0].encode()


def main(folder: str, servers: str, source_topic: str, target_topic: str) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", f"{folder}/checkpoints")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(source_topic)
    source.set_value_only_deserializer(SimpleStringSchema()).set_group_id(f"of-{source_topic}")
    source.set_unbounded(KafkaOffsetsInitializer.latest()).set_max_records_per_epoch(200)
    serializer = KafkaRecordSerializationSchema.builder().set_topic(target_topic)
    serializer.set_value_serialization_schema(SimpleStringSchema())
    serializer.set_key_serialization_schema(Word())
    sink = KafkaSink.builder().set_bootstrap_servers(servers)
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("kill")
    sink.set_record_serializer(serializer.build())
    keys = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "keys").uid("keys")
    counts = keys.map(lambda key: (key, 1)).key_by(lambda pair: pair[0]).sum(1).uid("counts")
    counts.map(lambda pair: f"{pair[0]} {pair[1]}").sink_to(sink.build()).uid("written")
    env.execute("killed kafka")


if __name__ == "__main__":
    main(*sys.argv[1:])
