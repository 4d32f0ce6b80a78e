"""Latency markers of an unbounded job on Spark."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource

if TYPE_CHECKING:
    from pathlib import Path

    from opchain.spark import EpochProgress

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]

LONGEST_S = 240


def test_latencies_are_measured_per_epoch(
    tmp_path: Path,
) -> None:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
    configuration.set_string("metrics.latency.interval", "20 ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    numbers: DataGeneratorSource[int] = DataGeneratorSource(lambda n: n, records_per_second=100)
    stream = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    stream.key_by(lambda n: n % 5).reduce(lambda a, b: a + b).uid("sums").print()
    heard: queue.Queue[EpochProgress] = queue.Queue()
    env.add_epoch_listener(heard.put)
    client = env.execute_async("marked")
    epochs = [heard.get(timeout=LONGEST_S) for _ in range(5)]
    client.cancel().result(LONGEST_S)

    latencies = [
        operator.latency_ms
        for epoch in epochs
        for vertex in epoch.vertices
        for operator in vertex.operators
        if operator.uid == "sums"
    ]
    assert latencies[0], "the first epoch has markers"
    assert sum(bool(latency) for latency in latencies) > 2
    for epoch, latency in zip(epochs, latencies, strict=True):
        assert epoch.next_timer_ms is None
        if latency:
            # A marker passes a shuffle within its epoch, which takes a short time.
            assert 0 < latency["max"] <= epoch.duration_ms
            # At most one marker per interval since the epoch before, for two subtasks.
            span_ms = epoch.duration_ms + epoch.durations_ms["waiting"]
            assert latency["count"] <= 2 * (span_ms / 20 + 2)
