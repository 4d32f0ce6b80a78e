"""Counts the words in one Kafka topic and writes the counts to another one, exactly once.

Start a broker with `opchain dev kafka`, then this program, and write lines to the topic "lines".
"""

import sys

from opchain.common import Configuration, SimpleStringSchema, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)


def main(servers: str = "127.0.0.1:9092", checkpoints: str = "checkpoints", end: str = "") -> None:
    """Runs until it is stopped, or with "latest" up to the messages that are in the topic at the start."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", checkpoints)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("lines")
    source.set_group_id("words").set_value_only_deserializer(SimpleStringSchema())
    if end == "latest":
        source.set_unbounded(KafkaOffsetsInitializer.latest())
    to_words = KafkaRecordSerializationSchema.builder().set_topic("words")
    to_words.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(servers)
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("words")
    lines = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines").uid("lines")
    counts = lines.flat_map(str.split).map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    texts = counts.sum(1).uid("counts").map(lambda pair: f"{pair[0]} {pair[1]}")
    texts.sink_to(sink.set_record_serializer(to_words.build()).build()).uid("words")
    env.execute("kafka to kafka")


if __name__ == "__main__":
    main(*sys.argv[1:])
