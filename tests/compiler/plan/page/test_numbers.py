from __future__ import annotations

import json
import math
from typing import Any

import pytest

from opchain.compiler.plan.page.numbers import page_numbers
from opchain.runtime.measurements.job_metrics import JobMetrics
from opchain.runtime.measurements.task_metrics import OperatorCounts, TaskMetrics
from opchain.runtime.measurements.vertex_metrics import OperatorMetrics, VertexMetrics
from opchain.runtime.metrics.histogram import HistogramValue

LEAST, GREATEST = -(2**63), 2**63 - 1


def numbers(records: list[int], watermarks: list[int], **task: Any) -> dict[str, Any]:
    """The page's numbers of one vertex with one operator; its tasks ran for a second."""
    counts = tuple(
        OperatorCounts(record, 2 * record, (), watermark)
        for record, watermark in zip(records, watermarks, strict=True)
    )
    values: dict[str, Any] = {"idle_ns": 0, "back_pressured_ns": 0, "knows_busy_time": True} | task
    subtasks = tuple(
        TaskMetrics(
            subtask=number,
            attempt=0,
            records_in=count.records_in,
            records_out=count.records_out,
            bytes_in=10,
            bytes_out=20,
            buffers_in=1,
            buffers_out=1,
            elapsed_ns=1_000_000_000,
            mails=0,
            mail_latency_ms=HistogramValue(),
            operators=(count,),
            **values,
        )
        for number, count in enumerate(counts)
    )
    operator = OperatorMetrics("count", "op", None, "job.py:1", counts, (1.0,) * len(counts))
    shown = page_numbers(JobMetrics((VertexMetrics("v", "count", subtasks, (operator,)),)))
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    vertex: dict[str, Any] = shown["v"]
    return vertex


def test_metrics_of_a_vertex_combine_those_of_its_subtasks() -> None:
    vertex = numbers([3, 1], [5, 7])
    assert (vertex["recordsIn"], vertex["recordsOut"]) == (4, 8)
    assert (vertex["bytesIn"], vertex["bytesOut"]) == (20, 40)
    assert vertex["skew"] == 1.5
    assert [task["recordsIn"] for task in vertex["subtasks"]] == [3, 1]
    assert vertex["operators"]["op"] == {
        "recordsIn": 4,
        "recordsOut": 8,
        "lateDropped": 0,
        "watermark": 5,
        "skew": 1.5,
    }


def test_time_is_divided_into_busy_back_pressured_and_idle() -> None:
    vertex = numbers([1], [0], idle_ns=500_000_000, back_pressured_ns=200_000_000)
    shares = [vertex[share] for share in ("busy", "backPressured", "idle")]
    assert shares == [0.3, 0.2, 0.5]
    assert vertex["subtasks"][0]["busy"] == 0.3


def test_busy_time_is_none_if_a_task_does_not_measure_it() -> None:
    vertex = numbers([1], [0], knows_busy_time=False)
    assert vertex["busy"] is None
    assert vertex["subtasks"][0]["busy"] is None
    assert not math.isnan(vertex["idle"])


@pytest.mark.parametrize(
    ("watermarks", "shown"),
    [
        ([LEAST, 5], None),
        ([GREATEST, 5], 5),
        ([GREATEST, GREATEST], "end"),
        ([-1, 3], -1),
    ],
)
def test_the_watermark_is_the_minimum_and_its_extremes_are_shown_as_words(
    watermarks: list[int], shown: int | str | None
) -> None:
    assert numbers([1, 1], watermarks)["watermark"] == shown
