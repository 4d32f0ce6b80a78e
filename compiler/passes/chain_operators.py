"""StreamGraph -> chained edges: asks CHAINING_RULES about every edge, and explains the answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import networkx as nx

from opchain.compiler.graph.plan import made
from opchain.compiler.passes.chaining_rules import CHAINING_RULES, Link, is_chained
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.compiler.graph.plan import Plan
    from opchain.compiler.graph.stream_graph import StreamEdge, StreamGraph


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an edge is not chained: a rule's stable code, what is the case, and what could be changed."""

    code: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return self.text


def chain_operators(plan: Plan) -> Plan:
    """Fills `chained_edges`, `chained_sources` and `heads`.

    Nodes come behind their inputs, so one walk finds every chain's head before it is asked for
    (Flink walks up from each yielding operator and keeps a cache).
    """
    graph = made(plan.stream_graph)
    heads: dict[int, int] = {}
    chained_edges: set[int] = set()
    chained_sources: list[int] = []
    for node in graph.nodes():
        heads[node.id] = node.id
        legs = _legs(graph, node.id)
        for edge in graph.in_edges(node.id):
            link = _link(plan, edge, heads, legs)
            if not is_chained(link):
                continue
            chained_edges.add(edge.index)
            if link.runs_source_inside_head:
                chained_sources.append(edge.source)
                heads[edge.source] = node.id
            else:
                heads[node.id] = heads[edge.source]
    return replace(
        plan,
        chained_edges=frozenset(chained_edges),
        chained_sources=frozenset(chained_sources),
        heads=heads,
    )


def chains_are_trees(plan: Plan) -> None:
    """The invariant: an operator is chained behind one other at most; every chain has one head."""
    heads, trees = made(plan.heads), chained_subgraph(plan)
    for node, parents in trees.in_degree():
        if parents > 1:
            label = made(plan.stream_graph).node(node).label
            raise InternalError(f"{label} is chained to {parents} upstream operators")
    if not nx.is_forest(trees):
        raise InternalError("chained edges form a cycle")
    for chain in nx.weakly_connected_components(trees):
        (root,) = (node for node in chain if not trees.in_degree(node))
        head = heads[root] if root in made(plan.chained_sources) else root
        if any(heads[node] != head for node in chain):
            raise InternalError(f"the operators {sorted(chain)} are a chain with several heads")


def chained_subgraph(plan: Plan) -> nx.DiGraph[int]:
    """The operators with the chained edges between them: a tree a chain. Chained sources stand alone."""
    graph, chained_edges = made(plan.stream_graph), made(plan.chained_edges)
    trees: nx.DiGraph[int] = nx.DiGraph()
    trees.add_nodes_from(graph.graph)
    trees.add_edges_from(
        (edge.source, edge.target)
        for edge in graph.edges()
        if edge.index in chained_edges and edge.source not in made(plan.chained_sources)
    )
    return trees


def why_not_chained(plan: Plan, edge: StreamEdge) -> list[Reason]:
    """Every rule that an edge of the plan breaks, Flink's reason first; empty where it is chained."""
    legs = _legs(made(plan.stream_graph), edge.target)
    link = _link(plan, edge, made(plan.heads), legs)
    return [
        Reason(rule.code, text, rule.remedy(link))
        for rule in CHAINING_RULES
        if (text := rule.why_broken(link)) is not None
    ]


def _legs(graph: StreamGraph, node_id: int) -> Counter[int]:
    """How many edges lead into each input of a node, counted once for all of them."""
    return Counter(edge.type_number for edge in graph.in_edges(node_id))


def _link(plan: Plan, edge: StreamEdge, heads: Mapping[int, int], legs: Counter[int]) -> Link:
    graph = made(plan.stream_graph)
    return Link(
        up=graph.node(edge.source),
        down=graph.node(edge.target),
        edge=edge,
        head=graph.node(heads[edge.source]),
        inputs=len(legs),
        legs=legs[edge.type_number],
        consumers=len(graph.out_edges(edge.source)),
        is_batch=graph.is_batch,
        settings=plan.program.settings,
    )
