"""Chained edges -> chains, in the order in which Flink creates their vertices.

Flink: `setChaining` and `createChain` of `StreamingJobGraphGenerator`, one recursion that collects
operators, starts new chains at edges that are cut, and makes each vertex when all behind it are made.
Here it is two walks with a stack of their own: down every tree, then through the trees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.graph.job_graph import Chain
from opchain.compiler.graph.plan import made
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan
    from opchain.compiler.graph.stream_graph import StreamEdge, StreamGraph


def form_chains(plan: Plan) -> Plan:
    """Fills `chains`."""
    graph, heads = made(plan.stream_graph), made(plan.heads)
    chained_edges, chained_sources = made(plan.chained_edges), made(plan.chained_sources)
    chains = {
        head: _grow(graph, head, chained_edges, chained_sources)
        for head in heads
        if heads[head] == head
    }
    entries = sorted(heads[source.id] for source in graph.sources())
    return replace(plan, chains=tuple(_consumers_first(chains, entries)))


def every_operator_is_in_one_chain(plan: Plan) -> None:
    """The invariant: chains and the sources inside them partition the stream nodes."""
    found = [
        node for chain in made(plan.chains) for node in chain.operators + chain.chained_sources
    ]
    expected = {node.id for node in made(plan.stream_graph).nodes()}
    if len(found) != len(expected) or set(found) != expected:
        raise InternalError("the chains do not hold every operator exactly once")


def _grow(
    graph: StreamGraph, head: int, chained_edges: frozenset[int], chained_sources: frozenset[int]
) -> Chain:
    operators: list[int] = []
    children_first: list[int] = []
    outputs: list[StreamEdge] = []
    stack = [(head, False)]
    while stack:
        node, children_are_done = stack.pop()
        if children_are_done:
            children_first.append(node)
            outputs += [edge for edge in graph.out_edges(node) if edge.index not in chained_edges]
            continue
        operators.append(node)
        stack.append((node, True))
        stack += [
            (edge.target, False)
            for edge in reversed(graph.out_edges(node))
            if edge.index in chained_edges
        ]
    return Chain(
        head=head,
        operators=tuple(operators),
        children_first=tuple(children_first),
        chained_sources=tuple(
            edge.source for edge in graph.in_edges(head) if edge.source in chained_sources
        ),
        outputs=tuple(outputs),
    )


def _consumers_first(chains: dict[int, Chain], entries: list[int]) -> list[Chain]:
    """Depth first from the entry points in ascending order, each chain behind its consumers."""
    order: list[Chain] = []
    entered: set[int] = set()
    stack = [(head, False) for head in reversed(entries)]
    while stack:
        head, consumers_are_done = stack.pop()
        if consumers_are_done:
            order.append(chains[head])
        elif head not in entered:
            entered.add(head)
            stack.append((head, True))
            stack += [(edge.target, False) for edge in reversed(chains[head].outputs)]
    return order
