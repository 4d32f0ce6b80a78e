from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.measurements.vertex_metrics import OperatorMetrics, PerSubtask, rate
from opchain.runtime.metrics.histogram import Histogram, HistogramValue
from opchain.runtime.metrics.metric_types import GaugeValue


def metrics(*subtasks: Any, seconds: tuple[float, ...] | None = None) -> OperatorMetrics:
    spans = (1.0,) * len(subtasks) if seconds is None else seconds
    return OperatorMetrics("parse", "id-parse", None, "job.py:2", subtasks, spans)


def of(*values: int) -> HistogramValue:
    histogram = Histogram()
    for value in values:
        histogram.update(value)
    return histogram.snapshot()


def test_records_of_subtasks_are_added(make_operator: Any) -> None:
    merged = metrics(
        make_operator(records_in=6, records_out=3), make_operator(records_in=2, records_out=1)
    )
    assert (merged.parallelism, merged.records_in, merged.records_out) == (2, 8, 4)
    assert merged.skew == 1.5
    assert repr(merged) == "<OperatorMetrics of 'parse': 8 in, 4 out>"


def test_the_minimum_watermark_of_the_subtasks_counts_for_each_input(make_operator: Any) -> None:
    merged = metrics(
        make_operator(input_watermarks=(5, 40), output_watermark=5),
        make_operator(input_watermarks=(30, 7), output_watermark=7),
    )
    assert merged.input_watermarks == (5, 7)
    assert merged.output_watermark == 5
    values = merged.values()
    assert values["currentInputWatermark"] == 5
    assert values["currentInput1Watermark"] == 5
    assert values["currentInput2Watermark"] == 7
    assert values["currentOutputWatermark"] == 5


def test_a_source_has_no_input_watermark_and_a_single_input_no_number(make_operator: Any) -> None:
    source = metrics(make_operator(), make_operator())
    assert source.input_watermarks == ()
    assert not [name for name in source.values() if name.startswith("currentInput")]
    one = metrics(make_operator(input_watermarks=(3,)))
    assert [name for name in one.values() if name.startswith("currentInput")] == [
        "currentInputWatermark"
    ]


def test_rates_of_parallel_subtasks_are_added(make_operator: Any) -> None:
    merged = metrics(
        make_operator(records_in=10, records_out=4),
        make_operator(records_in=6, records_out=0),
        seconds=(2.0, 0.5),
    )
    values = merged.values()
    assert values["numRecordsIn"] == 16
    assert values["numRecordsInPerSecond"] == 17.0
    assert values["numRecordsOutPerSecond"] == 2.0


def test_a_task_with_no_elapsed_time_has_no_rate() -> None:
    assert rate([5, 4], (0.0, 2.0)) == 2.0


def test_registered_metrics_are_merged_by_name(make_operator: Any) -> None:
    merged = metrics(
        make_operator(registered={"seen": 3, "size": GaugeValue(8)}),
        make_operator(registered={"seen": 4, "size": GaugeValue(9), "late": 1}),
    )
    assert merged.registered == {"seen": 7, "size": PerSubtask((8, 9)), "late": 1}
    assert merged.values()["late"] == 1


def test_names_of_flink_take_precedence_over_registered_names(make_operator: Any) -> None:
    merged = metrics(make_operator(records_in=5, registered={"numRecordsIn": 77}))
    assert merged.values()["numRecordsIn"] == 5
    assert merged.registered == {"numRecordsIn": 77}


def test_latencies_are_merged_by_source(make_operator: Any) -> None:
    merged = metrics(
        make_operator(latencies={"s1": of(5, 9)}),
        make_operator(latencies={"s1": of(7), "s2": of(1)}),
    )
    assert merged.latencies == {"s1": of(5, 7, 9), "s2": of(1)}
    assert merged.values()["latency.source_id.s1"].quantile(0.5) == 7


@pytest.mark.parametrize("parallelism", [1, 3])
def test_without_counts_all_values_are_zero(make_operator: Any, parallelism: int) -> None:
    merged = metrics(*[make_operator()] * parallelism)
    assert merged.skew == 1.0
    assert {value for name, value in merged.values().items() if name.startswith("num")} == {0}
