"""An unbounded job on Spark, reported to Prometheus, an OTLP receiver, OpenLineage and Spark's metrics system."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest
from receivers import JsonReceiver, OtlpReceiver, receiving

from opchain.common import Configuration, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource
from opchain.runtime.testing.ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.spark import EpochProgress

pytestmark = pytest.mark.spark

LONGEST_S = 240


@pytest.mark.usefixtures("session")
def test_epochs_are_reported_to_all_receivers(tmp_path: Path) -> None:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    otlp, events, [port] = OtlpReceiver(), JsonReceiver(), free_ports(1)
    with receiving(otlp.take) as collector, receiving(events.take) as lineage:
        configuration = Configuration()
        for key, value in {
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "opchain.metrics.prometheus.address": f"127.0.0.1:{port}",
            "opchain.metrics.otlp.endpoint": collector,
            "opchain.openlineage.url": lineage,
        }.items():
            configuration.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=100)
        stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers")
        stream.key_by(lambda n: n % 5).reduce(lambda a, b: a + b).name("sums").print()
        heard: queue.Queue[EpochProgress] = queue.Queue()
        env.add_epoch_listener(heard.put)
        client = env.execute_async("reported")
        epochs = [heard.get(timeout=LONGEST_S)]
        while not epochs[-1].records_in:
            epochs.append(heard.get(timeout=LONGEST_S))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
        client.cancel().result(LONGEST_S)
    by_name = {family.name: family.samples for family in families}
    records = by_name["flink_taskmanager_job_task_operator_numRecordsIn"]
    assert sum(each.value for each in records if each.labels["operator_name"] == "sums") >= 1
    (completed,) = by_name["flink_jobmanager_job_numberOfCompletedCheckpoints"]
    assert completed.value >= len(epochs)
    spans = [span for span in otlp.spans if span.name == "epoch reported"]
    assert len(spans) >= len(epochs)
    assert [event["eventType"] for event in events][:: len(events) - 1] == ["START", "ABORT"]
    assert "RUNNING" in {event["eventType"] for event in events}


IN_SPARK = """
import json, urllib.request
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "true").getOrCreate()
from opchain import Configuration, StreamExecutionEnvironment
configuration = Configuration()
configuration.set_string("opchain.metrics.spark", "true")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.from_sequence(1, 100).map(lambda number: number + 1).name("add one").print()
env.execute("my job")
with urllib.request.urlopen(f"{session.sparkContext.uiWebUrl}/metrics/json/", timeout=60) as answer:
    print("gauges", json.dumps(json.load(answer)["gauges"]))
"""


@pytest.mark.usefixtures("needs_spark")
def test_sparks_metrics_system_shows_the_metrics_of_a_job() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_SPARK],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("gauges "))
    gauges = json.loads(line.removeprefix("gauges "))
    (records,) = (
        value["value"]
        for name, value in gauges.items()
        if name.endswith(".driver.AccumulatorSource.my-job.add-one.0.numRecordsIn")
    )
    assert records == 100
