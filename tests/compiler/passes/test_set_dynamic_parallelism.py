from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.graph.job_graph import VertexSize
from opchain.compiler.graph.plan import JobGraphError
from opchain.compiler.passes.set_dynamic_parallelism import forward_edges_join_equal_sizes
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


def sizes(plan: Plan) -> dict[str, tuple[int, int]]:
    assert plan.stream_graph is not None
    assert plan.vertex_sizes is not None
    return {plan.stream_graph.node(head).name: size for head, size in plan.vertex_sizes.items()}


def test_without_a_dynamic_graph_the_head_sets_the_parallelism(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env, "in").set_max_parallelism(16).map(str).set_max_parallelism(8)
    assert sizes(compiled(env)) == {"Source: in": (4, 16)}


@pytest.mark.parametrize(("auto", "expected"), [("true", -1), ("false", 4)])
def test_an_unset_parallelism_is_left_to_the_scheduler(
    batch_env: Any, source: Any, compiled: Any, auto: str, expected: int
) -> None:
    source(batch_env, "in").map(str)
    assert sizes(compiled(batch_env, auto_parallelism=auto)) == {"Source: in": (expected, -1)}


def test_one_set_parallelism_in_a_vertex_applies_to_the_vertex(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    source(batch_env, "in").map(str).set_parallelism(4)
    assert sizes(compiled(batch_env)) == {"Source: in": (4, -1)}


def test_vertices_with_forward_edges_share_their_parallelism(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    chosen = source(batch_env, "in").map(str).name("a").set_parallelism(4)
    chosen.forward().map(str).name("b").start_new_chain().set_max_parallelism(8)
    chosen.rescale().map(str).name("c").start_new_chain()
    assert sizes(compiled(batch_env)) == {
        "Source: in": (4, 8),
        "b": (4, 8),
        "c": (-1, -1),
    }


def test_a_forward_group_refuses_a_max_parallelism_below_its_parallelism(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    chosen = source(batch_env, "in").set_parallelism(4)
    chosen.forward().map(str).name("small").start_new_chain().set_max_parallelism(2)
    with pytest.raises(JobGraphError) as raised:
        compiled(batch_env)
    message = str(raised.value)
    assert message.startswith("'small' (test_set_dynamic_parallelism.py:")
    assert "has max parallelism 2, but forward edges join it with operators that run 4" in message


def test_the_invariant_finds_a_forward_edge_between_different_parallelisms(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).map(str).start_new_chain()
    plan = compiled(env)
    with pytest.raises(InternalError, match="joins 4 and 3 subtasks"):
        forward_edges_join_equal_sizes(
            replace(plan, vertex_sizes={**plan.vertex_sizes, 2: VertexSize(3, -1)})
        )
