from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.compiler.passes.create_job_graph import every_vertex_has_a_name
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


def names(plan: Plan) -> list[str]:
    assert plan.vertex_names is not None
    assert plan.vertex_order is not None
    return [plan.vertex_names[head] for head in plan.vertex_order]


def test_vertex_names_put_several_outputs_in_brackets(env: Any, source: Any, compiled: Any) -> None:
    a = source(env, "in").map(str).name("a")
    b = a.map(str).name("b")
    b.map(str).name("c")
    b.map(str).name("d")
    a.map(str).name("e").map(str).name("f")
    assert names(compiled(env)) == ["Source: in -> a -> (b -> (c, d), e -> f)"]


def test_vertex_names_leave_out_operators_of_other_vertices(
    env: Any, source: Any, compiled: Any
) -> None:
    a = source(env, "in").map(str).name("a")
    a.rebalance().map(str).name("cut")
    a.map(str).name("kept")
    assert names(compiled(env)) == ["Source: in -> a -> kept", "cut"]


def test_vertex_names_list_chained_sources_after_the_head(
    env: Any, source: Any, compiled: Any
) -> None:
    multiple_input([source(env, "a"), source(env, "b")], [list] * 2).name("many").map(str)
    assert names(compiled(env)) == ["many [Source: a, Source: b] -> Map"]


def test_the_index_in_vertex_names_is_in_topological_order(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env, "in").rebalance().map(str).name("a")
    assert names(compiled(env, index_prefix="true")) == ["[vertex-0]Source: in", "[vertex-1]a"]


def test_the_invariant_finds_a_vertex_without_a_name(env: Any, source: Any, compiled: Any) -> None:
    source(env).map(str)
    with pytest.raises(InternalError):
        every_vertex_has_a_name(replace(compiled(env), vertex_names={}))
