"""Kafka to Kafka on Spark: each record is written once and in order per key, whatever process is killed."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opchain.common import (
    Configuration,
    Duration,
    SimpleStringSchema,
    Time,
    TimestampAssigner,
    WatermarkStrategy,
)
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.testing import faults

if TYPE_CHECKING:
    from kafka_broker import Kafka

    from opchain.spark import EpochProgress

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("needs_spark")]

JOB = Path(__file__).with_name("killed_kafka_job.py")
KILLS = [
    "epoch-begun@1",
    "before-state@2",  # kills a task
    "acknowledged@2",
    "completed@3",  # the checkpoint is complete, and none of its messages were sent
    "after-state@4",  # kills a task
    "between-commits@4",  # its messages were sent
    "committed@5",
]


def test_each_record_is_counted_and_written_once_whatever_is_killed(
    tmp_path: Path, kafka: Kafka
) -> None:
    source, target = kafka.topic(3), kafka.topic(2)
    draw = random.Random(7)
    keys = [f"k{draw.randint(0, 9)}" for _ in range(1000)]
    for number in range(3):
        kafka.produce(source, keys[number::3], number)
    survived = faults.run_with_kills(
        [sys.executable, str(JOB), str(tmp_path), kafka.servers, source, target],
        KILLS,
        environment={
            "PYSPARK_SUBMIT_ARGS": "--master local[2,4] --conf spark.ui.enabled=false pyspark-shell"
        },
        timeout_s=900,
    )
    assert set(survived.died) == set(KILLS)
    counts: Counter[str] = Counter()
    for message in kafka.messages(target):
        key, number = message.value().decode().split()
        counts[key] += 1
        assert int(number) == counts[key], (
            "the counts of a key come in order, none twice, none left out"
        )
    assert counts == Counter(keys)
    assert sum(kafka.committed(f"of-{source}").values()) == 1000
    waiting = (tmp_path / "checkpoints" / "outbox").rglob("*")
    assert [path for path in waiting if path.is_file()] == []


class Millis(TimestampAssigner):
    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        return int(value)


@pytest.mark.usefixtures("session")
def test_windows_fire_despite_a_silent_partition_and_new_partitions_are_read(
    tmp_path: Path, kafka: Kafka
) -> None:
    topic = kafka.topic(2)
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    configuration.set_string("execution.checkpointing.interval", "200 ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
    source.set_value_only_deserializer(SimpleStringSchema())
    source.set_property("partition.discovery.interval.ms", "500")
    times: WatermarkStrategy[str] = WatermarkStrategy.for_monotonous_timestamps()
    times = times.with_timestamp_assigner(Millis()).with_idleness(Duration.of_millis(500))
    texts = env.from_source(source.build(), times, "times").uid("times")
    seconds = texts.map(lambda text: (int(text) // 1000, 1)).key_by(lambda pair: pair[0])
    windows = seconds.window(TumblingEventTimeWindows.of(Time.seconds(1)))
    counts = windows.reduce(lambda left, right: (left[0], left[1] + right[1])).uid("counts")
    found = counts.collect_async()
    client = env.execute_async("counts")
    kafka.produce(topic, ["100", "200", "1100"], 0)
    assert next(found) == (0, 2)
    kafka.add_partitions(topic, 3)
    kafka.produce(topic, ["1200", "2100"], 2)
    assert next(found) == (1, 2)
    client.cancel().result(240)


@pytest.mark.usefixtures("session")
def test_an_aligned_source_that_is_ahead_waits_for_the_partitions_of_another(
    tmp_path: Path, kafka: Kafka
) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    times: WatermarkStrategy[str] = WatermarkStrategy.for_monotonous_timestamps()
    times = times.with_timestamp_assigner(Millis())
    aligned = times.with_watermark_alignment("group", Duration.of_millis(150))
    steps = {"fast": 10, "slow": 1}
    streams, topics = [], {}

    def watermark(name: str, number: int, read: dict[str, list[int]]) -> int:
        return steps[name] * (number + 2 * (read[name][number] - 1)) - 1

    for name, step in steps.items():
        topic = topics[name] = kafka.topic(2)
        for number in range(2):
            kafka.produce(topic, range(number * step, 100 * step, 2 * step), number)
        source = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
        source.set_unbounded(KafkaOffsetsInitializer.latest()).set_max_records_per_epoch(10)
        source.set_value_only_deserializer(SimpleStringSchema())
        streams.append(env.from_source(source.build(), aligned, name).uid(name))
    epochs: list[EpochProgress] = []
    env.add_epoch_listener(epochs.append)
    with streams[0].union(streams[1]).execute_and_collect() as found:
        assert sorted(map(int, found)) == sorted([*range(0, 1000, 10), *range(100)])
    read = {name: [0, 0] for name in steps}
    waited = 0
    for epoch in epochs:
        operators = [item for vertex in epoch.vertices for item in vertex.operators]
        now = {
            item.uid: [item.splits[f"{topics[item.uid]}-{number}"]["next"] for number in range(2)]
            for item in operators
            if item.uid in topics
        }
        if 0 < sum(read["slow"]) < 100:
            least = min(watermark(name, number, read) for name in steps for number in range(2))
            for number in range(2):
                if watermark("fast", number, read) > least + 150:
                    assert now["fast"][number] == read["fast"][number]
                    waited += 1
        read = now
    assert waited > 3
    assert read == {"fast": [50, 50], "slow": [50, 50]}
