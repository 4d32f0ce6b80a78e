"""The metrics of a task."""

from __future__ import annotations

from opchain.runtime.measurements.hot_keys import HotKeys
from opchain.runtime.measurements.task_metrics import OperatorCounts, TaskMetrics
from opchain.runtime.metrics.histogram import Histogram

TASK = TaskMetrics(
    subtask=1,
    attempt=0,
    records_in=3,
    records_out=2,
    bytes_in=30,
    bytes_out=20,
    buffers_in=2,
    buffers_out=1,
    elapsed_ns=1000,
    idle_ns=400,
    back_pressured_ns=100,
    knows_busy_time=True,
    mails=7,
    mail_latency_ms=Histogram().snapshot(),
    operators=(OperatorCounts(3, 2, (100,), 99, {"seen": 5}),),
    hot_keys=(HotKeys(4, 2, (("'a'", 94, 2),), ((94, 2),)),),
)
