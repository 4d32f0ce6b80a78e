from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.passes.create_job_graph import producers_come_first
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


def order(plan: Plan) -> list[str]:
    assert plan.stream_graph is not None
    assert plan.vertex_order is not None
    return [plan.stream_graph.node(head).name for head in plan.vertex_order]


def test_vertices_are_sorted_sources_first_and_then_depth_first(
    env: Any, source: Any, compiled: Any
) -> None:
    #  x ~~> a ~~> b ~~> d        d waits for c
    #  y ~~~~~~~~> c ~~> d
    a = source(env, "x").rebalance().map(str).name("a")
    c = source(env, "y").rebalance().map(str).name("c")
    b = a.rebalance().map(str).name("b")
    b.rebalance().union(c.rebalance()).map(str).name("d")
    assert order(compiled(env)) == ["Source: x", "Source: y", "a", "b", "c", "d"]


def test_consumers_are_sorted_by_the_order_of_data_sets(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    numbers = source(batch_env, "in")
    numbers.rebalance().map(str).name("a")
    numbers.shuffle().map(str).name("b")
    numbers.rebalance().map(str).name("shares with a")
    assert order(compiled(batch_env)) == ["Source: in", "a", "shares with a", "b"]


@pytest.mark.parametrize("change", ["lost", "doubled", "backwards"])
def test_the_invariant_finds_lost_doubled_and_misplaced_vertices(
    env: Any, source: Any, compiled: Any, change: str
) -> None:
    source(env).rebalance().map(str)
    plan = compiled(env)
    first, second = plan.vertex_order
    broken = {"lost": (first,), "doubled": (first, first, second), "backwards": (second, first)}
    with pytest.raises(InternalError):
        producers_come_first(replace(plan, vertex_order=broken[change]))
