from __future__ import annotations

import pickle

import pytest

from opchain.runtime.job.client import JobExecutionResult, JobID
from opchain.runtime.measurements.job_metrics import JobMetrics
from opchain.runtime.metrics.accumulators import AccumulatorError, FailedAccumulator

JOB = JobID("0" * 31 + "1")
RESULT = JobExecutionResult(JOB, 77, {"words": 5, "lines": 2})


def test_a_result_has_job_id_runtime_and_accumulators() -> None:
    assert RESULT.get_job_id() == JOB
    assert RESULT.get_net_runtime() == 77
    assert RESULT.is_job_execution_result()
    assert RESULT.get_accumulator_result("words") == 5
    assert RESULT.get_accumulator_result("other") is None
    assert RESULT.get_all_accumulator_results() == {"words": 5, "lines": 2}


def test_accumulators_are_returned_as_a_copy() -> None:
    RESULT.get_all_accumulator_results().clear()
    assert RESULT.get_accumulator_result("words") == 5


def test_the_repr_is_sorted_by_accumulator_name() -> None:
    assert str(RESULT) == f"Job {JOB} ran for 77 ms.\n  lines: 2\n  words: 5"
    assert str(JobExecutionResult(JOB, 0)) == f"Job {JOB} ran for 0 ms."


def test_results_are_compared_by_value() -> None:
    assert pickle.loads(pickle.dumps(RESULT)) == RESULT


def test_reading_a_failed_accumulator_raises_its_error() -> None:
    result = JobExecutionResult(JOB, 1, {"words": 5, "mean": FailedAccumulator("it is a Fraction")})
    assert result.get_accumulator_result("words") == 5
    with pytest.raises(AccumulatorError, match=f"'mean' of job {JOB} has no value: it is a Fract"):
        result.get_accumulator_result("mean")
    with pytest.raises(AccumulatorError, match="'mean'"):
        result.get_all_accumulator_results()


def test_a_result_without_metrics_has_empty_metrics() -> None:
    assert RESULT.metrics == JobMetrics()
    assert RESULT.metrics.vertices == ()
