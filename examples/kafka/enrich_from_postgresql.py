"""Kafka to Kafka with a lookup: adds the user's name from a PostgreSQL table to each order.

Each subtask has a database connection and a cache of names.

    opchain dev kafka --topic orders --topic named-orders
    psql -c "CREATE TABLE users (id text PRIMARY KEY, name text)"
    python examples/kafka/enrich_from_postgresql.py "host=127.0.0.1 user=postgres"
"""

import json
import sys
from typing import Any

from opchain.common import Configuration, SimpleStringSchema, WatermarkStrategy
from opchain.datastream import RuntimeContext, StreamExecutionEnvironment
from opchain.datastream.connectors.base import DeliveryGuarantee
from opchain.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from opchain.datastream.functions import MapFunction


class AddName(MapFunction[Any, Any]):
    def __init__(self, database: str) -> None:
        self.database = database

    def open(self, runtime_context: RuntimeContext) -> None:
        import psycopg  # noqa: PLC0415 - only tasks need it

        self.names: dict[str, str | None] = {}
        self.connection = psycopg.connect(self.database, autocommit=True)

    def map(self, value: Any) -> Any:
        user = value["user"]
        if user not in self.names:
            rows = self.connection.execute("SELECT name FROM users WHERE id = %s", (user,))
            self.names[user] = next((name for (name,) in rows), None)
        return {**value, "name": self.names[user]}

    def close(self) -> None:
        self.connection.close()


def main(
    database: str,
    servers: str = "127.0.0.1:9092",
    checkpoints: str = "checkpoints",
    end: str = "",
) -> None:
    """Runs until it is stopped, or with "latest" up to the messages that are in the topic at the start."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", checkpoints)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("orders")
    source.set_group_id("enrich").set_value_only_deserializer(SimpleStringSchema())
    if end == "latest":
        source.set_unbounded(KafkaOffsetsInitializer.latest())
    to_named = KafkaRecordSerializationSchema.builder().set_topic("named-orders")
    to_named.set_value_serialization_schema(SimpleStringSchema())
    sink = (
        KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(to_named.build())
    )
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    sink.set_transactional_id_prefix("named-orders")
    orders = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "orders")
    named = orders.uid("orders").map(json.loads).map(AddName(database)).map(json.dumps)
    named.sink_to(sink.build()).uid("named-orders")
    env.execute("enrich from postgresql")


if __name__ == "__main__":
    main(*sys.argv[1:])
