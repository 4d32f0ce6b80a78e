"""The metrics of a job as plain values for the page. A live page requests them repeatedly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.compiler.plan.model import JobPlan
    from opchain.runtime.measurements.hot_keys import HotKeys
    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.measurements.vertex_metrics import OperatorMetrics, VertexMetrics

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_SECOND_MS = 1000
_HOTTEST = 10


def page_numbers(metrics: JobMetrics, lately: JobMetrics | None = None) -> dict[str, Any]:
    """The numbers by vertex id and, for each vertex, by operator id.

    Args:
        metrics: The metrics.
        lately: The metrics for the shares of time, for example those of the last epoch. Default: `metrics`.

    Shares of time are between 0 and 1. `busy` is None for a source with its own thread. A watermark is in milliseconds;
    "end" after all records, None before the first watermark. `skew` is the number of records of the busiest subtask,
    divided by the mean.
    """
    return {
        vertex.id: _vertex(vertex, recent)
        for vertex, recent in zip(metrics.vertices, (lately or metrics).vertices, strict=True)
    }


def empty_numbers(plan: JobPlan) -> dict[str, Any]:
    """The numbers of a job that starts, so its page has room for the values."""
    nothing = {"recordsIn": 0, "recordsOut": 0, "lateDropped": 0, "watermark": None, "skew": 1.0}
    rest = {
        "bytesIn": 0,
        "bytesOut": 0,
        "busy": 0.0,
        "backPressured": 0.0,
        "idle": 0.0,
        "mails": 0,
        "mailLatencyMs": None,
        "mailQueue": 0,
        "hotKeys": None,
    }
    return {
        vertex.id: nothing
        | rest
        | {
            "subtasks": [],
            "operators": {
                plan.operator_at[node].id: nothing
                for node in (*vertex.chained_sources, *vertex.operators)
            },
        }
        for vertex in plan.vertices
    }


def _vertex(vertex: VertexMetrics, lately: VertexMetrics) -> dict[str, Any]:
    return {
        "recordsIn": vertex.records_in,
        "recordsOut": vertex.records_out,
        "bytesIn": vertex.bytes_in,
        "bytesOut": vertex.bytes_out,
        "busy": _share(lately.busy_time_ms_per_second),
        "backPressured": _share(lately.back_pressured_time_ms_per_second),
        "idle": _share(lately.idle_time_ms_per_second),
        "mails": vertex.mails,
        "mailLatencyMs": _rounded(lately.mail_latency_ms.quantile(0.95)),
        "mailQueue": lately.longest_mail_queue,
        "lateDropped": sum(operator.late_records_dropped for operator in vertex.operators),
        "skew": round(vertex.skew, 3),
        "hotKeys": None if vertex.hot_keys is None else _hot_keys(vertex.hot_keys),
        "watermark": _least_watermark(operator.output_watermark for operator in vertex.operators),
        "subtasks": list(map(_subtask, vertex.subtasks, lately.subtasks)),
        "operators": {operator.operator_id: _operator(operator) for operator in vertex.operators},
    }


def _hot_keys(hot: HotKeys) -> dict[str, Any]:
    """The ten hottest keys (text, key group and number of records), and the hottest key groups."""
    return {
        "records": hot.records,
        "keys": [list(key) for key in hot.keys[:_HOTTEST]],
        "groups": [list(group) for group in hot.groups[:_HOTTEST]],
    }


def _operator(operator: OperatorMetrics) -> dict[str, Any]:
    return {
        "recordsIn": operator.records_in,
        "recordsOut": operator.records_out,
        "lateDropped": operator.late_records_dropped,
        "watermark": _watermark(operator.output_watermark),
        "skew": round(operator.skew, 3),
    }


def _subtask(task: TaskMetrics, lately: TaskMetrics) -> dict[str, Any]:
    elapsed = lately.elapsed_ns or 1
    return {
        "recordsIn": task.records_in,
        "recordsOut": task.records_out,
        "bytesIn": task.bytes_in,
        "bytesOut": task.bytes_out,
        "busy": round(lately.busy_ns / elapsed, 4) if lately.knows_busy_time else None,
        "backPressured": round(lately.back_pressured_ns / elapsed, 4),
        "watermark": _least_watermark(counts.output_watermark for counts in task.operators),
    }


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 3)


def _share(ms_per_second: float) -> float | None:
    return None if math.isnan(ms_per_second) else round(ms_per_second / _SECOND_MS, 4)


def _least_watermark(watermarks: Iterable[int]) -> int | str | None:
    return _watermark(min(watermarks, default=_LEAST))


def _watermark(watermark: int) -> int | str | None:
    """A time in milliseconds. JavaScript would round the smallest and the largest value."""
    return {_LEAST: None, _GREATEST: "end"}.get(watermark, watermark)
