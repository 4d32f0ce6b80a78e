from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opchain.runtime.measurements.task_metrics import OperatorCounts, TaskMetrics
from opchain.runtime.metrics.histogram import HistogramValue
from opchain.runtime.program.operator_specs import MapSpec
from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram, VertexProgram

MakeTask = Callable[..., TaskMetrics]
MakeOperator = Callable[..., OperatorCounts]


@pytest.fixture
def make_operator() -> MakeOperator:
    """Metrics of an operator of a subtask; all are 0 except the given ones."""

    def make(**numbers: Any) -> OperatorCounts:
        return OperatorCounts(
            **{"records_in": 0, "records_out": 0, "input_watermarks": (), "output_watermark": 0}
            | numbers
        )

    return make


@pytest.fixture
def make_task(make_operator: MakeOperator) -> MakeTask:
    """Metrics of a task that ran for a second; all are 0 except the given ones."""

    def make(subtask: int = 0, **numbers: Any) -> TaskMetrics:
        defaults = {
            "attempt": 0,
            "records_in": 0,
            "records_out": 0,
            "bytes_in": 0,
            "bytes_out": 0,
            "buffers_in": 0,
            "buffers_out": 0,
            "elapsed_ns": 1_000_000_000,
            "idle_ns": 0,
            "back_pressured_ns": 0,
            "knows_busy_time": True,
            "mails": 0,
            "mail_latency_ms": HistogramValue(),
            "operators": (make_operator(),),
        }
        return TaskMetrics(subtask, **(defaults | numbers))

    return make


@pytest.fixture
def job() -> JobProgram:
    """Two vertices: `read -> parse` with two subtasks, tasks 0 and 1, and `count`, task 2."""
    read = OperatorProgram(0, "read", "id-read", "job.py:1", MapSpec(str), parent=-1)
    parse = OperatorProgram(1, "parse", "id-parse", "job.py:2", MapSpec(str), parent=0, uid="p")
    count = OperatorProgram(0, "count", "id-count", "job.py:3", MapSpec(str), parent=-1)
    return JobProgram(
        "clicks",
        (
            VertexProgram("v1", "read -> parse", 2, 128, 0, (read, parse)),
            VertexProgram("v2", "count", 1, 128, 2, (count,)),
        ),
        (),
    )
