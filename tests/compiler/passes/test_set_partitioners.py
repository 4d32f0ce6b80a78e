from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.compiler.graph.partitioner import KeyBy, PartitionerKind
from opchain.compiler.graph.plan import JobGraphError
from opchain.compiler.passes.chain_operators import cut_edges_have_real_partitioners
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan

CONSECUTIVE = PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH
UNSPECIFIED = PartitionerKind.FORWARD_FOR_UNSPECIFIED


def final(plan: Plan) -> list[str]:
    assert plan.stream_graph is not None
    return [plan.partitioner(edge.index).kind.value for edge in plan.stream_graph.edges()]


@pytest.mark.parametrize(
    ("kind", "chained", "expected"),
    [
        (UNSPECIFIED, True, "FORWARD"),
        (UNSPECIFIED, False, "RESCALE"),
        (CONSECUTIVE, True, "FORWARD"),
        (CONSECUTIVE, False, "HASH"),
        (PartitionerKind.FORWARD, False, "FORWARD"),
        (PartitionerKind.SHUFFLE, False, "SHUFFLE"),
    ],
)
def test_a_dynamic_graph_resolves_unspecified_forward_partitioners(
    batch_env: Any, source: Any, compiled: Any, kind: Any, chained: bool, expected: str
) -> None:
    key_by = KeyBy(str) if kind is CONSECUTIVE else None
    mapped = source(batch_env).partition(kind, key_by=key_by).map(str)
    if not chained:
        mapped.start_new_chain()
    plan = compiled(batch_env)
    assert final(plan) == [expected]
    if expected == "HASH":
        assert plan.partitioner(0).key_by is key_by


def test_a_chained_source_keeps_its_unspecified_partitioner(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    multiple_input([source(batch_env)], [list])
    plan = compiled(batch_env)
    assert plan.partitioners == {}
    assert final(plan) == ["FORWARD_FOR_UNSPECIFIED"]


@pytest.mark.parametrize("kind", [UNSPECIFIED, CONSECUTIVE])
@pytest.mark.parametrize("mode", ["streaming", "batch without the adaptive scheduler"])
def test_internal_forward_partitioners_need_a_dynamic_graph(
    env: Any, batch_env: Any, source: Any, compiled: Any, kind: Any, mode: str
) -> None:
    used, keys = (env, {}) if mode == "streaming" else (batch_env, {"scheduler": "Default"})
    source(used).partition(kind, key_by=KeyBy(str)).map(str)
    with pytest.raises(JobGraphError, match="the adaptive batch scheduler decides") as raised:
        compiled(used, **keys)
    assert "to 'Map' (test_set_partitioners.py:" in str(raised.value)


def test_the_invariant_finds_an_unresolved_partitioner_between_vertices(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    source(batch_env).map(str).start_new_chain()
    plan = compiled(batch_env)
    with pytest.raises(InternalError, match="still has partitioner FORWARD_FOR_UNSPECIFIED"):
        cut_edges_have_real_partitioners(replace(plan, partitioners={}))


def test_the_invariant_finds_an_exchange_inside_a_chain(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).shuffle().map(str)
    plan = compiled(env)
    with pytest.raises(InternalError, match="has partitioner SHUFFLE"):
        cut_edges_have_real_partitioners(replace(plan, chained_edges=frozenset({0})))
