from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.graph.plan import JobGraphError
from opchain.compiler.passes.place_stages import every_vertex_is_in_a_group
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


def groups(plan: Plan) -> dict[str, int]:
    assert plan.stream_graph is not None
    assert plan.slot_groups is not None
    return {plan.stream_graph.node(head).name: group for head, group in plan.slot_groups.items()}


def test_streaming_has_a_default_group_and_one_per_name(
    env: Any, source: Any, compiled: Any
) -> None:
    a = source(env, "in").rebalance().map(str).name("a")
    a.map(str).name("heavy").slot_sharing_group("heavy")
    a.rebalance().map(str).name("heavy too").slot_sharing_group("heavy")
    assert groups(compiled(env)) == {"Source: in": 0, "a": 0, "heavy": 1, "heavy too": 1}


def test_batch_has_a_default_group_per_pipelined_region(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    source(batch_env, "x").rebalance().map(str).name("a")
    source(batch_env, "y").rebalance().map(str).name("b")
    blocking = groups(compiled(batch_env, shuffle="ALL_EXCHANGES_BLOCKING"))
    assert blocking == {"Source: x": 0, "Source: y": 1, "a": 2, "b": 3}
    pipelined = groups(compiled(batch_env, shuffle="ALL_EXCHANGES_PIPELINED"))
    assert pipelined == {"Source: x": 0, "Source: y": 1, "a": 0, "b": 1}


def test_a_named_group_is_refused_beside_a_hybrid_exchange(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    source(batch_env).rebalance().map(str).name("heavy").slot_sharing_group("big")
    with pytest.raises(JobGraphError) as raised:
        compiled(batch_env, shuffle="ALL_EXCHANGES_HYBRID_FULL")
    assert "'heavy' (test_assign_slot_sharing_groups.py:" in str(raised.value)
    assert "is in slot sharing group 'big', but the job has hybrid exchanges" in str(raised.value)


def test_the_invariant_finds_a_vertex_without_a_slot_sharing_group(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).map(str)
    with pytest.raises(InternalError):
        every_vertex_is_in_a_group(replace(compiled(env), slot_groups={}))
