"""Kafka to Parquet files, exactly once: a folder for each user.

opchain dev kafka --topic orders
python examples/kafka/to_parquet.py orders-as-parquet
"""

import json
import sys
from typing import Any

from opchain.common import Configuration, Row, SimpleStringSchema, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from opchain.datastream.formats.parquet import ParquetBulkWriters
from opchain.table import DataTypes


class ByUser(BucketAssigner):
    def get_bucket_id(self, element: Any, timestamp: int | None, processing_time: int) -> str:
        return f"user={element[0]}"


def main(
    folder: str,
    servers: str = "127.0.0.1:9092",
    checkpoints: str = "checkpoints",
    end: str = "",
) -> None:
    """Runs until it is stopped, or with "latest" up to the messages that are in the topic at the start."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", checkpoints)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("orders")
    source.set_group_id("to-parquet").set_value_only_deserializer(SimpleStringSchema())
    if end == "latest":
        source.set_unbounded(KafkaOffsetsInitializer.latest())
    columns = DataTypes.ROW(
        [DataTypes.FIELD("user", DataTypes.STRING()), DataTypes.FIELD("price", DataTypes.DOUBLE())]
    )
    sink = FileSink.for_bulk_format(folder, ParquetBulkWriters.for_row_type(columns))
    sink.with_bucket_assigner(ByUser())
    orders = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "orders")
    events = orders.uid("orders").map(json.loads)
    rows = events.map(lambda order: Row(user=order["user"], price=float(order["price"])))
    rows.sink_to(sink.build()).uid("files")
    env.execute("to parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
