"""Kafka to PostgreSQL: keeps the last order of each user in a table, exactly once.

opchain dev kafka --topic orders
psql -c "CREATE TABLE last_orders (user_id text PRIMARY KEY, price float)"
python examples/kafka/to_postgresql.py jdbc:postgresql://127.0.0.1/postgres
"""

import json
import sys

from opchain.common import Configuration, Row, SimpleStringSchema, Types, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from opchain.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource

ORDER = Types.ROW([Types.STRING(), Types.DOUBLE()])
UPSERT = (
    "INSERT INTO last_orders VALUES (?, ?) "
    "ON CONFLICT (user_id) DO UPDATE SET price = excluded.price"
)


def main(
    database: str,
    user: str = "postgres",
    servers: str = "127.0.0.1:9092",
    checkpoints: str = "checkpoints",
    end: str = "",
) -> None:
    """Runs until it is stopped, or with "latest" up to the messages that are in the topic at the start."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", checkpoints)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("orders")
    source.set_group_id("to-postgresql").set_value_only_deserializer(SimpleStringSchema())
    if end == "latest":
        source.set_unbounded(KafkaOffsetsInitializer.latest())
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(database)
    connection.with_driver_name("org.postgresql.Driver").with_user_name(user)
    orders = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "orders")
    events = orders.uid("orders").map(json.loads).key_by(lambda order: order["user"])
    rows = events.map(lambda order: Row(order["user"], float(order["price"])), ORDER)
    rows.add_sink(JdbcSink.sink(UPSERT, ORDER, connection.build())).uid("last-orders")
    env.execute("to postgresql")


if __name__ == "__main__":
    main(*sys.argv[1:])
