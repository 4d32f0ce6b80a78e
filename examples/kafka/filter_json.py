"""Kafka to Kafka, exactly once: filters JSON messages.

opchain dev kafka --topic orders --topic large-orders
python examples/kafka/filter_json.py
"""

import json
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
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("orders")
    source.set_group_id("filter-json").set_value_only_deserializer(SimpleStringSchema())
    if end == "latest":
        source.set_unbounded(KafkaOffsetsInitializer.latest())
    to_large = KafkaRecordSerializationSchema.builder().set_topic("large-orders")
    to_large.set_value_serialization_schema(SimpleStringSchema())
    sink = (
        KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(to_large.build())
    )
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    sink.set_transactional_id_prefix("large-orders")
    orders = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "orders")
    large = orders.uid("orders").map(json.loads).filter(lambda order: order["price"] >= 100)
    large.map(json.dumps).sink_to(sink.build()).uid("large-orders")
    env.execute("filter json")


if __name__ == "__main__":
    main(*sys.argv[1:])
