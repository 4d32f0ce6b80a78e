from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.compiler.graph.plan import JobGraphError
from opchain.compiler.passes.create_job_graph import job_graph_holds_everything
from opchain.datastream import CoMapFunction
from opchain.runtime.errors import InternalError


class Both(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    def map2(self, value: int) -> int:
        return value


def test_a_vertex_has_the_id_and_the_slot_sharing_group_of_its_head(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env, "in").slot_sharing_group("g").map(str)
    plan = compiled(env)
    (vertex,) = plan.job_graph.vertices
    assert vertex.id == plan.operator_ids[1]
    assert vertex.head_id == 1
    assert vertex.slot_sharing_group == "g"
    assert [operator.node.name for operator in vertex.operators] == ["Source: in", "Map"]
    assert vertex.operator_id_order == (2, 1)
    assert [edge.target for edge in vertex.chained_edges()] == [2]


@pytest.mark.parametrize(
    ("parallelism", "max_parallelism", "effective"), [(4, None, 128), (200, None, 512), (4, 7, 7)]
)
def test_the_effective_max_parallelism_is_set_or_derived(
    env: Any,
    source: Any,
    compiled: Any,
    parallelism: int,
    max_parallelism: int | None,
    effective: int,
) -> None:
    numbers = source(env).set_parallelism(parallelism)
    if max_parallelism is not None:
        numbers.set_max_parallelism(max_parallelism)
    numbers.map(str).set_parallelism(parallelism)
    (vertex,) = compiled(env).job_graph.vertices
    assert vertex.effective_max_parallelism == effective


def test_max_parallelism_is_undefined_if_the_scheduler_decides(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    source(batch_env).map(str)
    (vertex,) = compiled(batch_env).job_graph.vertices
    assert (vertex.parallelism, vertex.effective_max_parallelism) == (-1, -1)


def test_edges_are_in_the_order_of_their_producers(env: Any, source: Any, compiled: Any) -> None:
    b, a = source(env, "b"), source(env, "a")
    a.rebalance().connect(b.key_by(str)).map(Both())
    job_graph = compiled(env).job_graph
    edges = job_graph.in_edges(job_graph.vertices[-1].id)
    assert [edge.edge.type_number for edge in edges] == [2, 1]
    assert [edge.ship_strategy for edge in edges] == ["HASH", "REBALANCE"]
    assert [edge.distribution_pattern.value for edge in edges] == ["ALL_TO_ALL", "ALL_TO_ALL"]


def test_a_vertex_has_the_user_defined_and_the_generated_id(
    env: Any, source: Any, compiled: Any
) -> None:
    sourced = source(env).set_uid_hash("AB" * 16)
    multiple_input([sourced], [list]).set_uid_hash("CD" * 16)
    (vertex,) = compiled(env).job_graph.vertices
    assert vertex.head.user_defined_operator_id == "cd" * 16
    assert [each.user_defined_operator_id for each in vertex.chained_sources] == [None]


def test_more_tasks_than_key_groups_are_refused(env: Any, source: Any, compiled: Any) -> None:
    source(env).map(str).name("wide").set_parallelism(40_000)
    with pytest.raises(JobGraphError) as raised:
        compiled(env)
    assert "'wide' (test_create_job_graph.py:" in str(raised.value)
    assert "runs 40000 tasks, but keys fall into 32768 groups at most" in str(raised.value)


@pytest.mark.parametrize("lost", ["vertices", "edges"])
def test_the_invariant_finds_lost_vertices_and_edges(
    env: Any, source: Any, compiled: Any, lost: str
) -> None:
    source(env).rebalance().map(str)
    plan = compiled(env)
    vertices = plan.job_graph.vertices[:1] if lost == "vertices" else plan.job_graph.vertices
    broken = replace(plan.job_graph, vertices=vertices, edges=())
    with pytest.raises(InternalError, match="exactly once"):
        job_graph_holds_everything(replace(plan, job_graph=broken))
