"""What a job has counted, as the page takes it: plain values that a live view could send again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.runtime.metrics.job_metrics import JobMetrics
    from opchain.runtime.metrics.operator_metrics import OperatorMetrics
    from opchain.runtime.metrics.task_metrics import TaskMetrics
    from opchain.runtime.metrics.vertex_metrics import VertexMetrics

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_SECOND_MS = 1000


def page_numbers(metrics: JobMetrics) -> dict[str, Any]:
    """The numbers by vertex id, and below it by operator id.

    Shares of time are between 0 and 1, `busy` None where a source runs on a thread of its own.
    A watermark is in milliseconds, "end" behind all records, None before the first one. `skew` is
    the greatest subtask's records over the mean.
    """
    return {vertex.id: _vertex(vertex) for vertex in metrics.vertices}


def _vertex(vertex: VertexMetrics) -> dict[str, Any]:
    return {
        "recordsIn": vertex.records_in,
        "recordsOut": vertex.records_out,
        "bytesIn": vertex.bytes_in,
        "bytesOut": vertex.bytes_out,
        "busy": _share(vertex.busy_time_ms_per_second),
        "backPressured": _share(vertex.back_pressured_time_ms_per_second),
        "idle": _share(vertex.idle_time_ms_per_second),
        "skew": round(vertex.skew, 3),
        "watermark": _least_watermark(operator.output_watermark for operator in vertex.operators),
        "subtasks": [_subtask(task) for task in vertex.subtasks],
        "operators": {operator.operator_id: _operator(operator) for operator in vertex.operators},
    }


def _operator(operator: OperatorMetrics) -> dict[str, Any]:
    return {
        "recordsIn": operator.records_in,
        "recordsOut": operator.records_out,
        "watermark": _watermark(operator.output_watermark),
        "skew": round(operator.skew, 3),
    }


def _subtask(task: TaskMetrics) -> dict[str, Any]:
    elapsed = task.elapsed_ns or 1
    return {
        "recordsIn": task.records_in,
        "recordsOut": task.records_out,
        "bytesIn": task.bytes_in,
        "bytesOut": task.bytes_out,
        "busy": round(task.busy_ns / elapsed, 4) if task.knows_busy_time else None,
        "backPressured": round(task.back_pressured_ns / elapsed, 4),
        "watermark": _least_watermark(counts.output_watermark for counts in task.operators),
    }


def _share(ms_per_second: float) -> float | None:
    return None if math.isnan(ms_per_second) else round(ms_per_second / _SECOND_MS, 4)


def _least_watermark(watermarks: Iterable[int]) -> int | str | None:
    return _watermark(min(watermarks, default=_LEAST))


def _watermark(watermark: int) -> int | str | None:
    """A time in milliseconds. JavaScript's numbers would round the two ends of the range."""
    return {_LEAST: None, _GREATEST: "end"}.get(watermark, watermark)
