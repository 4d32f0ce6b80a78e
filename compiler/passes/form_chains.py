"""Chained edges -> chains, in the order in which Flink creates their vertices.

The chains are the components of the StreamGraph's subgraph of chained edges, each a tree below its head. Flink:
`setChaining` and `createChain` of `StreamingJobGraphGenerator`, one recursion that collects operators, starts new
chains at edges that are cut, and creates each vertex after all of its consumers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx

from opchain.compiler.graph.job_graph import Chain
from opchain.compiler.graph.plan import made
from opchain.compiler.graph.stream_graph import sources_of
from opchain.compiler.passes.chain_operators import chained_subgraph
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.compiler.graph.plan import Plan

_ENTRY = -1
"""A node before all sources, so that one search starts at each of them in turn. Node ids are positive."""


def form_chains(plan: Plan) -> Plan:
    """Fills `chains`."""
    heads = made(plan.heads)
    trees = chained_subgraph(plan)
    chains = {}
    for head in sources_of(trees):
        if heads[head] == head:
            chains[head] = _chain(plan, trees, head)
    entries = sorted(heads[source.id] for source in made(plan.stream_graph).sources())
    order = _consumers_first(chains, entries)
    return replace(plan, chains=tuple(chains[head] for head in order))


def every_operator_is_in_one_chain(plan: Plan) -> None:
    """The invariant: chains and the sources inside them partition the stream nodes."""
    found = [
        node for chain in made(plan.chains) for node in chain.operators + chain.chained_sources
    ]
    expected = {node.id for node in made(plan.stream_graph).nodes()}
    if len(found) != len(expected) or set(found) != expected:
        raise InternalError("the chains do not hold every operator exactly once")


def _chain(plan: Plan, trees: nx.DiGraph[int], head: int) -> Chain:
    graph, chained_edges = made(plan.stream_graph), made(plan.chained_edges)
    children_first = tuple(nx.dfs_postorder_nodes(trees, head))
    return Chain(
        head=head,
        operators=tuple(nx.dfs_preorder_nodes(trees, head)),
        children_first=children_first,
        chained_sources=tuple(
            edge.source
            for edge in graph.in_edges(head)
            if edge.source in made(plan.chained_sources)
        ),
        outputs=tuple(
            edge
            for node in children_first
            for edge in graph.out_edges(node)
            if edge.index not in chained_edges
        ),
    )


def _consumers_first(chains: dict[int, Chain], entries: list[int]) -> Iterator[int]:
    """The heads, depth first from the entries in ascending order, each after its consumers.

    The quotient is built by hand: networkx.quotient_graph looks at every pair of chains.
    """
    quotient: nx.DiGraph[int] = nx.DiGraph()
    quotient.add_edges_from((_ENTRY, head) for head in entries)
    quotient.add_edges_from(
        (head, edge.target) for head, chain in chains.items() for edge in chain.outputs
    )
    order: Iterator[int] = nx.dfs_postorder_nodes(quotient, _ENTRY)
    return (head for head in order if head != _ENTRY)
