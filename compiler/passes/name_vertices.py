"""Chains -> the names of vertices: `Source: a -> Map -> (Filter, Sink: out)`.

Flink: `createChainedName` and `addVertexIndexPrefixInVertexName` of `StreamingJobGraphGenerator`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.graph.plan import made
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.job_graph import Chain
    from opchain.compiler.graph.plan import Plan


def name_vertices(plan: Plan) -> Plan:
    """Fills `vertex_names`."""
    names = {chain.head: _chain_name(plan, chain) for chain in made(plan.chains)}
    if plan.program.settings.vertex_name_index_prefix:
        for number, head in enumerate(made(plan.vertex_order)):
            names[head] = f"[vertex-{number}]{names[head]}"
    return replace(plan, vertex_names=names)


def every_vertex_has_a_name(plan: Plan) -> None:
    """The invariant."""
    if set(made(plan.vertex_names)) != set(made(plan.vertex_order)):
        raise InternalError("a vertex has no name")


def _chain_name(plan: Plan, chain: Chain) -> str:
    """Writes the tree piece by piece: joining names of names would be quadratic in a long chain."""
    graph, chained_edges = made(plan.stream_graph), made(plan.chained_edges)
    pieces: list[str] = []
    stack: list[int | str] = [chain.head]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            pieces.append(top)
            continue
        pieces.append(graph.node(top).name)
        if top == chain.head and chain.chained_sources:
            sources = ", ".join(graph.node(source).name for source in chain.chained_sources)
            pieces.append(f" [{sources}]")
        children = [edge.target for edge in graph.out_edges(top) if edge.index in chained_edges]
        if len(children) == 1:
            stack += [children[0], " -> "]
        elif children:
            stack.append(")")
            for child in reversed(children):
                stack += [child, ", "]
            stack[-1] = " -> ("
    return "".join(pieces)
