from __future__ import annotations

import pickle
from typing import Any

from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.metric_types import MeterValue


def test_busy_time_is_neither_idle_nor_back_pressured(make_task: Any) -> None:
    task = make_task(elapsed_ns=2_500_000_000, idle_ns=500_000_000, back_pressured_ns=1)
    assert task.busy_ns == 1_999_999_999
    assert task.seconds == 2.5


def test_pickled_task_metrics_are_small(make_task: Any, make_operator: Any) -> None:
    latency = Histogram()
    for number in range(100):
        latency.update(number)
    operators = tuple(
        make_operator(
            records_in=10**9,
            input_watermarks=(2**63 - 1,),
            output_watermark=2**63 - 1,
            registered={"seen": 10**6, "rate": MeterValue(5, 0.5)},
            latencies={"0" * 32: latency.snapshot()},
        )
        for _ in range(10)
    )
    task = make_task(operators=operators)
    data = pickle.dumps(task, protocol=5)
    assert pickle.loads(data) == task
    assert len(data) < 10_000
