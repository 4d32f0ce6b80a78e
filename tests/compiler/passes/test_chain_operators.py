from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Time
from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.compiler.passes.chain_operators import (
    chains_are_trees,
    every_operator_is_in_one_chain,
    why_not_chained,
)
from opchain.datastream import AsyncDataStream, AsyncFunction, CoMapFunction, SourceFunction
from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan


class Endless(SourceFunction[int]):
    def run(self, ctx: Any) -> None: ...

    def cancel(self) -> None: ...


class Lookup(AsyncFunction[int, int]):
    async def async_invoke(self, value: int) -> list[int]:
        return [value]


class Both(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    def map2(self, value: int) -> int:
        return value


def chained(plan: Plan) -> set[tuple[str, str]]:
    graph = plan.stream_graph
    assert graph is not None
    assert plan.chained_edges is not None
    return {
        (graph.node(edge.source).name, graph.node(edge.target).name)
        for edge in graph.edges()
        if edge.index in plan.chained_edges
    }


def codes(plan: Plan, target: str) -> list[list[str]]:
    """The broken rules of each edge into an operator."""
    assert plan.stream_graph is not None
    (node,) = (node for node in plan.stream_graph.nodes() if node.name == target)
    return [
        [reason.code for reason in why_not_chained(plan, edge)]
        for edge in plan.stream_graph.in_edges(node.id)
    ]


def test_operators_in_a_line_form_one_chain(env: Any, source: Any, compiled: Any) -> None:
    source(env, "in").map(str).sink_to(DiscardingSink())
    plan = compiled(env)
    assert chained(plan) == {("Source: in", "Map"), ("Map", "Sink: Writer")}
    assert set(plan.heads.values()) == {1}


def test_an_unchained_edge_lists_every_broken_rule_in_flinks_order(
    env: Any, source: Any, compiled: Any
) -> None:
    parsed = source(env).map(str).name("parse").disable_chaining()
    counted = parsed.key_by(str).map(str).name("count")
    counted.start_new_chain().set_parallelism(2).slot_sharing_group("heavy")
    env.disable_operator_chaining()
    assert codes(compiled(env), "count") == [
        [
            "chaining-disabled",
            "slot-sharing-group",
            "upstream-strategy",
            "downstream-strategy",
            "parallelism",
            "partitioner",
        ]
    ]


def test_a_reason_names_operators_lines_and_parallelisms(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).map(str).name("parse").map(str).name("clean").set_parallelism(2)
    plan = compiled(env)
    (edge,) = plan.stream_graph.in_edges(3)
    parallelism, partitioner = why_not_chained(plan, edge)
    assert str(parallelism) == parallelism.text
    assert parallelism.text.startswith("parallelism differs: 'parse' (test_chain_operators.py:")
    assert parallelism.text.endswith("runs 2")
    assert "set_parallelism(4) on 'clean'" in parallelism.remedy
    assert "no partitioner was chosen" in partitioner.text


def test_a_chained_edge_has_no_reasons(env: Any, source: Any, compiled: Any) -> None:
    source(env).map(str)
    assert codes(compiled(env), "Map") == [[]]


def test_unions_and_operators_with_several_inputs_are_not_chained(
    env: Any, source: Any, compiled: Any
) -> None:
    a, b = source(env, "a"), source(env, "b")
    a.union(b).map(str).name("united")
    a.connect(b).map(Both()).name("both")
    plan = compiled(env)
    assert codes(plan, "united") == [["union"], ["union"]]
    assert codes(plan, "both") == [["inputs"], ["inputs"]]


def test_a_union_of_one_stream_is_chained_like_the_stream(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env, "in").union().map(str)
    assert chained(compiled(env)) == {("Source: in", "Map")}


def test_async_operators_are_not_chained_to_a_legacy_source(env: Any, compiled: Any) -> None:
    old = env.add_source(Endless(), "old").set_parallelism(1)
    mapped = old.map(str).set_parallelism(1)
    looked_up = AsyncDataStream.unordered_wait(mapped, Lookup(), Time.seconds(1))
    looked_up.set_parallelism(1).name("lookup").sink_to(DiscardingSink()).set_parallelism(1)
    plan = compiled(env)
    assert codes(plan, "lookup") == [["yielding"]]
    # The sink's writer yields as well, but the chain that it is in has another head.
    assert chained(plan) == {("Source: old", "Map"), ("lookup", "Sink: Writer")}


def test_sources_are_chained_into_a_multiple_input_operator(
    env: Any, source: Any, compiled: Any
) -> None:
    a, b, c = source(env, "a"), source(env, "b"), source(env, "c")
    many = multiple_input([a, b.map(str), c], [list] * 3).name("many")
    c.map(str).name("elsewhere")
    many.map(str).name("next")
    plan = compiled(env)
    assert plan.chained_sources == {1}
    assert ("Source: a", "many") in chained(plan)
    assert plan.heads[1] == many.transformation.id
    assert codes(plan, "many") == [
        [],
        ["inputs", "downstream-strategy"],
        ["inputs"],
    ]


def test_the_invariant_finds_a_second_parent(env: Any, source: Any, compiled: Any) -> None:
    source(env, "a").union(source(env, "b")).map(str)
    plan = compiled(env)
    with pytest.raises(InternalError, match=r"'Map' .* is chained to 2 upstream operators"):
        chains_are_trees(replace(plan, chained_edges=frozenset({0, 1})))


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


def test_a_chain_lists_outputs_of_children_before_the_operators_own(
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


def test_sources_in_a_multiple_input_operator_form_no_chain(
    env: Any, source: Any, compiled: Any
) -> None:
    b, a = source(env, "b"), source(env, "a")
    multiple_input([a, b], [list, list]).name("many")
    plan = compiled(env)
    (chain,) = plan.chains
    assert names(plan, chain.operators) == ["many"]
    assert names(plan, chain.chained_sources) == ["Source: a", "Source: b"]


@pytest.mark.parametrize("change", ["lost", "doubled"])
def test_the_invariant_finds_a_lost_or_duplicated_operator(
    env: Any, source: Any, compiled: Any, change: str
) -> None:
    source(env).rebalance().map(str)
    plan = compiled(env)
    chains = plan.chains[:1] if change == "lost" else plan.chains + plan.chains[:1]
    with pytest.raises(InternalError, match="exactly once"):
        every_operator_is_in_one_chain(replace(plan, chains=chains))
