from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from opchain.runtime.measurements.job_metrics import (
    JobMetrics,
    merge_task_accumulators,
    merge_task_metrics,
)
from opchain.runtime.metrics.accumulators import LongCounter

if TYPE_CHECKING:
    from opchain.runtime.measurements.task_metrics import TaskMetrics


@pytest.fixture
def tasks(make_task: Any, make_operator: Any) -> dict[int, TaskMetrics]:
    counters = [pickle.dumps(LongCounter(number)) for number in (1, 20, 300)]
    return {
        0: make_task(
            0,
            records_in=5,
            operators=(
                make_operator(records_in=5),
                make_operator(records_in=5, accumulators={"n": counters[0]}),
            ),
        ),
        2: make_task(
            0,
            records_in=8,
            operators=(make_operator(records_in=8, accumulators={"n": counters[2]}),),
        ),
        1: make_task(
            1,
            records_in=3,
            operators=(
                make_operator(records_in=3),
                make_operator(records_in=3, accumulators={"n": counters[1]}),
            ),
        ),
    }


@pytest.fixture
def metrics(job: Any, tasks: dict[int, TaskMetrics]) -> JobMetrics:
    return merge_task_metrics(job, tasks)


def test_vertices_operators_and_subtasks_are_in_plan_order(metrics: JobMetrics) -> None:
    assert [vertex.name for vertex in metrics.vertices] == ["read -> parse", "count"]
    assert [operator.name for operator in metrics.operators] == ["read", "parse", "count"]
    assert [task.subtask for task in metrics.vertex("read -> parse").subtasks] == [0, 1]
    assert [counts.records_in for counts in metrics.operator("parse").subtasks] == [5, 3]


@pytest.mark.parametrize("name", ["parse", "p", "id-parse"])
def test_an_operator_is_found_by_name_uid_or_id(metrics: JobMetrics, name: str) -> None:
    operator = metrics.operator(name)
    assert (operator.name, operator.call_site, operator.records_in) == ("parse", "job.py:2", 8)
    assert operator.seconds == (1.0, 1.0)


@pytest.mark.parametrize("name", ["count", "v2"])
def test_a_vertex_is_found_by_name_or_id(metrics: JobMetrics, name: str) -> None:
    assert metrics.vertex(name).records_in == 8


def test_the_error_about_an_unknown_name_lists_the_known_ones(metrics: JobMetrics) -> None:
    with pytest.raises(KeyError, match="no operator has the name 'nope'; there are: 'read', 'pars"):
        metrics.operator("nope")
    with pytest.raises(KeyError, match="no vertex has the name 'read'; there are: 'read -> parse'"):
        metrics.vertex("read")
    with pytest.raises(KeyError, match="there are: none"):
        JobMetrics().operator("x")


def test_the_error_about_an_ambiguous_name_lists_the_ids(metrics: JobMetrics) -> None:
    doubled = JobMetrics((metrics.vertices[1], metrics.vertices[1]))
    with pytest.raises(
        KeyError, match="2 operators have the name 'count'; use the id: id-count, id"
    ):
        doubled.operator("count")


def test_accumulators_are_merged_over_vertices(job: Any, tasks: dict[int, TaskMetrics]) -> None:
    assert merge_task_accumulators(job, tasks) == {"n": 321}


def test_all_values_can_be_written_as_json(metrics: JobMetrics) -> None:
    data = metrics.as_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    first = data["vertices"][0]
    assert (first["id"], first["parallelism"], first["skew"]) == ("v1", 2, 1.25)
    assert first["metrics"]["numRecordsIn"] == 8
    assert [item["id"] for item in first["operators"]] == ["id-read", "id-parse"]
    assert first["operators"][1]["call_site"] == "job.py:2"
    assert first["operators"][1]["metrics"]["numRecordsIn"] == 8


def test_job_metrics_are_compared_by_value_and_have_a_short_repr(metrics: JobMetrics) -> None:
    assert pickle.loads(pickle.dumps(metrics)) == metrics
    assert repr(metrics) == "<JobMetrics: 2 vertices, 3 operators>"
    assert str(metrics) == metrics.table()
    assert JobMetrics() == JobMetrics(())
