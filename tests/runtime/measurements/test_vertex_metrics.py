from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.measurements.task_metrics import TaskMetrics
from opchain.runtime.measurements.vertex_metrics import VertexMetrics
from opchain.runtime.metrics.histogram import Histogram, HistogramValue

SECOND = 1_000_000_000
COUNTS = ("records_in", "records_out", "bytes_in", "bytes_out", "buffers_in", "buffers_out")
FLINKS = (
    "numRecordsIn",
    "numRecordsOut",
    "numBytesIn",
    "numBytesOut",
    "numBuffersIn",
    "numBuffersOut",
)


def vertex(*tasks: TaskMetrics) -> VertexMetrics:
    return VertexMetrics("v1", "read -> parse", tasks, ())


@st.composite
def tasks(draw: Any) -> TaskMetrics:
    spans = [draw(st.integers(0, 10**12)) for _ in range(3)]
    return TaskMetrics(
        subtask=0,
        attempt=0,
        **{name: draw(st.integers(0, 10**12)) for name in COUNTS},
        elapsed_ns=sum(spans),
        idle_ns=spans[0],
        back_pressured_ns=spans[1],
        knows_busy_time=True,
        mails=draw(st.integers(0, 100)),
        mail_latency_ms=HistogramValue(),
        operators=(),
    )


@given(st.lists(tasks(), min_size=1, max_size=6))
def test_counts_are_added_and_shares_of_time_sum_up_to_a_second(
    subtasks: list[TaskMetrics],
) -> None:
    merged = vertex(*subtasks)
    values = merged.values()
    for name, flinks in zip(COUNTS, FLINKS, strict=True):
        assert values[flinks] == sum(getattr(task, name) for task in subtasks)
    shares = (
        merged.busy_time_ms_per_second
        + merged.idle_time_ms_per_second
        + merged.back_pressured_time_ms_per_second
    )
    elapsed = sum(task.elapsed_ns for task in subtasks)
    assert shares == pytest.approx(1000 if elapsed else 0)


@given(st.lists(tasks(), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_subtasks_changes_no_number(subtasks: list[TaskMetrics], random: Any) -> None:
    merged = vertex(*subtasks).values()
    random.shuffle(subtasks)
    shuffled = vertex(*subtasks).values()
    assert shuffled.pop("mailboxLatencyMs") == merged.pop("mailboxLatencyMs")
    assert shuffled == pytest.approx(merged)


def test_times_are_weighted_by_the_elapsed_time_of_a_task(make_task: Any) -> None:
    merged = vertex(
        make_task(elapsed_ns=3 * SECOND, idle_ns=3 * SECOND),
        make_task(elapsed_ns=1 * SECOND, back_pressured_ns=SECOND // 2),
    )
    assert merged.idle_time_ms_per_second == 750.0
    assert merged.back_pressured_time_ms_per_second == 125.0
    assert merged.busy_time_ms_per_second == 125.0


def test_one_source_on_its_own_thread_makes_busy_time_unknown(make_task: Any) -> None:
    merged = vertex(make_task(knows_busy_time=False), make_task())
    assert math.isnan(merged.busy_time_ms_per_second)
    assert math.isnan(merged.values()["busyTimeMsPerSecond"])
    assert merged.values()["idleTimeMsPerSecond"] == 0.0


def test_a_task_with_no_elapsed_time_has_no_shares_and_rates(make_task: Any) -> None:
    values = vertex(make_task(elapsed_ns=0, records_in=5)).values()
    assert values["busyTimeMsPerSecond"] == 0.0
    assert values["numRecordsInPerSecond"] == 0.0


def test_mail_is_counted_per_second_and_its_latency_merged(make_task: Any) -> None:
    latencies = []
    for value in (1, 3):
        histogram = Histogram()
        histogram.update(value)
        latencies.append(histogram.snapshot())
    merged = vertex(
        make_task(mails=10, mail_latency_ms=latencies[0]),
        make_task(mails=4, mail_latency_ms=latencies[1], elapsed_ns=SECOND // 2),
    )
    assert merged.values()["mailboxMailsPerSecond"] == 18.0
    assert merged.values()["mailboxLatencyMs"].mean == 2.0


def test_the_skew_is_that_of_input_records(make_task: Any) -> None:
    merged = vertex(make_task(records_in=9, records_out=1), make_task(records_in=0, records_out=1))
    assert merged.skew == 2.0
    assert merged.parallelism == 2
    assert repr(merged) == "<VertexMetrics of 'read -> parse': 9 in, 2 out>"
