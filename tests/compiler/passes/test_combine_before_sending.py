from __future__ import annotations

from typing import Any

import pytest

from opchain.common import WatermarkStrategy
from opchain.compiler.passes.assemble_programs import combining_vertices, edges_with_timestamps
from opchain.datastream.functions import ReduceFunction


class Sum(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class Opened(Sum):
    def open(self, runtime_context: Any) -> None:
        pass


class Closed(Sum):
    def close(self) -> None:
        pass


def combining(plan: Any) -> list[str]:
    graph = plan.job_graph
    found = combining_vertices(graph, edges_with_timestamps(plan.stream_graph))
    return [graph.vertex(vertex_id).head.node.name for vertex_id in found]


@pytest.mark.parametrize(
    ("function", "combines"),
    [
        *((max, True), (lambda a, b: a, True), (Sum(), True)),
        *((Opened(), False), (Closed(), False), (lambda a, b: a + 1, False)),
    ],
)
def test_functions_with_open_or_not_associative_do_not_combine(
    batch_env: Any, source: Any, compiled: Any, function: Any, combines: bool
) -> None:
    source(batch_env).key_by(str).reduce(function).name("sum")
    assert combining(compiled(batch_env)) == (["sum"] if combines else [])


def test_in_streaming_mode_no_operator_combines_before_sending(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).key_by(str).reduce(max)
    assert combining(compiled(env)) == []


def test_only_reduces_and_rolling_aggregations_combine_before_sending(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    pairs = source(batch_env).map(lambda x: (x, x))
    pairs.key_by(lambda pair: pair[0]).sum(1).name("sum")
    pairs.key_by(lambda pair: pair[0]).map(str).name("map")
    assert combining(compiled(batch_env)) == ["sum"]


def test_records_with_timestamps_are_not_combined_before_sending(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    timed = source(batch_env).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda value, _: value)
    )
    timed.key_by(str).reduce(max).name("timed")
    assert combining(compiled(batch_env)) == []


def test_all_inputs_of_a_union_combine_before_sending(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    both = source(batch_env, "x").union(source(batch_env, "y"))
    both.key_by(str).reduce(max).name("sum")
    plan = compiled(batch_env)
    assert combining(plan) == ["sum"]
    programs = compiled(batch_env, "programs").job_program.vertices
    outputs = [output for vertex in programs for output in vertex.outputs]
    assert [output.combine for output in outputs] == [max, max]
