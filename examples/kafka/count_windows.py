"""Kafka to Kafka: counts the orders of each user in every minute of event time.

The timestamp of an order is the timestamp of its message. A minute ends when all partitions have passed it.

    opchain dev kafka --topic orders --topic orders-per-minute
    python examples/kafka/count_windows.py
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from opchain.common import Configuration, Duration, SimpleStringSchema, WatermarkStrategy
from opchain.common.time import Time
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from opchain.datastream.functions import AggregateFunction, ProcessWindowFunction
from opchain.datastream.window import TimeWindow, TumblingEventTimeWindows


class Count(AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithMinute(ProcessWindowFunction[int, str, str, TimeWindow]):
    def process(self, key: str, context: Any, elements: Any) -> Iterator[str]:
        (count,) = elements
        minute = context.window().start // 60_000
        yield json.dumps({"user": key, "minute": minute, "orders": count})


def main(servers: str = "127.0.0.1:9092", checkpoints: str = "checkpoints", end: str = "") -> None:
    """Runs until it is stopped, or with "latest" up to the messages that are in the topic at the start."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", checkpoints)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("orders")
    source.set_group_id("count-windows").set_value_only_deserializer(SimpleStringSchema())
    if end == "latest":
        source.set_unbounded(KafkaOffsetsInitializer.latest())
    to_counts = KafkaRecordSerializationSchema.builder().set_topic("orders-per-minute")
    to_counts.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(servers)
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    sink.set_transactional_id_prefix("orders-per-minute").set_record_serializer(to_counts.build())
    late = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    # A partition without messages delays windows for ten seconds at most.
    orders = env.from_source(source.build(), late.with_idleness(Duration.of_seconds(10)), "orders")
    by_user = orders.uid("orders").map(json.loads).key_by(lambda order: order["user"])
    minutes = by_user.window(TumblingEventTimeWindows.of(Time.minutes(1)))
    counts = minutes.aggregate(Count(), WithMinute()).uid("counts")
    counts.sink_to(sink.build()).uid("orders-per-minute")
    env.execute("count windows")


if __name__ == "__main__":
    main(*sys.argv[1:])
