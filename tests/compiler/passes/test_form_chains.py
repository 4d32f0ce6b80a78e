from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.compiler.dsl.multiple_input import multiple_input
from opchain.compiler.passes.form_chains import every_operator_is_in_one_chain
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


def names(plan: Plan, nodes: tuple[int, ...]) -> list[str]:
    assert plan.stream_graph is not None
    return [plan.stream_graph.node(node).name for node in nodes]


def test_a_chain_is_a_tree(env: Any, source: Any, compiled: Any) -> None:
    #          /-> b -> c
    #  in -> a
    #          \-> d ~~> e      (~~> is cut)
    a = source(env, "in").map(str).name("a")
    a.map(str).name("b").map(str).name("c")
    a.map(str).name("d").rebalance().map(str).name("e")
    plan = compiled(env)
    tail, tree = plan.chains
    assert names(plan, tail.operators) == ["e"]
    assert names(plan, tree.operators) == ["Source: in", "a", "b", "c", "d"]
    assert names(plan, tree.children_first) == ["c", "b", "d", "a", "Source: in"]


def test_outputs_of_children_come_before_an_operators_own(
    env: Any, source: Any, compiled: Any
) -> None:
    numbers = source(env, "in")
    numbers.rebalance().map(str).name("own")
    numbers.map(str).name("child").rebalance().map(str).name("childs")
    plan = compiled(env)
    assert names(plan, tuple(edge.target for edge in plan.chains[-1].outputs)) == ["childs", "own"]
    # Consumers are created before their producers, in the order of those outputs.
    assert [names(plan, chain.operators)[0] for chain in plan.chains] == [
        "childs",
        "own",
        "Source: in",
    ]


def test_chained_sources_are_no_chain_of_their_own(env: Any, source: Any, compiled: Any) -> None:
    b, a = source(env, "b"), source(env, "a")
    multiple_input([a, b], [list, list]).name("many")
    plan = compiled(env)
    (chain,) = plan.chains
    assert names(plan, chain.operators) == ["many"]
    assert names(plan, chain.chained_sources) == ["Source: a", "Source: b"]


@pytest.mark.parametrize("change", ["lost", "doubled"])
def test_the_invariant(env: Any, source: Any, compiled: Any, change: str) -> None:
    source(env).rebalance().map(str)
    plan = compiled(env)
    chains = plan.chains[:1] if change == "lost" else plan.chains + plan.chains[:1]
    with pytest.raises(InternalError, match="exactly once"):
        every_operator_is_in_one_chain(replace(plan, chains=chains))
