"""StreamGraph -> chained edges -> chains: checks CHAINING_RULES for every edge, and explains the result.

The chains are the connected components of the chained edges. Each is a tree with a head. They are in the order in which
Flink creates their vertices. Flink: `setChaining` and `createChain` of `StreamingJobGraphGenerator`. That is one
recursion, which collects operators, starts a new chain at each edge that is not chained, and creates a vertex after its
consumers.

In a dynamic graph, the numbers of subtasks may still change, so a forward partitioner is provisional until the chains
are known. `set_partitioners` keeps it inside a chain. Between chains, it becomes RESCALE, or the HASH that it replaced.
Flink: `tryConvertPartitionerForDynamicGraph`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import networkx as nx

from opchain.compiler.graph.job_graph import Chain
from opchain.compiler.graph.partitioner import Partitioner, PartitionerKind
from opchain.compiler.graph.plan import JobGraphError, Plan, required
from opchain.compiler.graph.stream_graph import StreamEdge, StreamGraph, sources_of
from opchain.compiler.passes.chaining_rules import CHAINING_RULES, Link, is_chained
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an edge is not chained: the code of a rule, the reason, and what the user could change."""

    code: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return self.text


def chain_operators(plan: Plan) -> Plan:
    """Sets `chained_edges`, `chained_sources` and `heads`.

    Nodes come after their inputs, so one pass finds the head of every chain before it is needed. (Flink walks up from
    each yielding operator, and keeps a cache.)
    """
    graph = required(plan.stream_graph)
    heads: dict[int, int] = {}
    chained_edges: set[int] = set()
    chained_sources: list[int] = []
    for node in graph.nodes():
        heads[node.id] = node.id
        streams = _stream_counts(graph, node.id)
        for edge in graph.in_edges(node.id):
            link = _link(plan, edge, heads, streams)
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
    """The invariant: an operator is chained to at most one input, and every chain has one head."""
    heads, trees = required(plan.heads), chained_subgraph(plan)
    for node, parents in trees.in_degree():
        if parents > 1:
            label = required(plan.stream_graph).node(node).label
            raise InternalError(f"{label} is chained to {parents} upstream operators")
    if not nx.is_forest(trees):
        raise InternalError("chained edges form a cycle")
    for chain in nx.weakly_connected_components(trees):
        (root,) = (node for node in chain if not trees.in_degree(node))
        head = heads[root] if root in required(plan.chained_sources) else root
        if any(heads[node] != head for node in chain):
            raise InternalError(f"the operators {sorted(chain)} are a chain with several heads")


def chained_subgraph(plan: Plan) -> nx.DiGraph[int]:
    """The operators with the chained edges between them: one tree per chain. Chained sources are separate."""
    graph, chained_edges = required(plan.stream_graph), required(plan.chained_edges)
    trees: nx.DiGraph[int] = nx.DiGraph()
    trees.add_nodes_from(graph.graph)
    trees.add_edges_from(
        (edge.source, edge.target)
        for edge in graph.edges()
        if edge.index in chained_edges and edge.source not in required(plan.chained_sources)
    )
    return trees


def why_not_chained(plan: Plan, edge: StreamEdge) -> list[Reason]:
    """All rules that an edge of the plan breaks, Flink's reason first. Empty for a chained edge."""
    streams = _stream_counts(required(plan.stream_graph), edge.target)
    link = _link(plan, edge, required(plan.heads), streams)
    return [
        Reason(rule.code, text, rule.remedy(link))
        for rule in CHAINING_RULES
        if (text := rule.why_broken(link)) is not None
    ]


def _stream_counts(graph: StreamGraph, node_id: int) -> Counter[int]:
    """The number of edges into each input of a node, counted once for all inputs."""
    return Counter(edge.type_number for edge in graph.in_edges(node_id))


def _link(plan: Plan, edge: StreamEdge, heads: Mapping[int, int], streams: Counter[int]) -> Link:
    graph = required(plan.stream_graph)
    return Link(
        up=graph.node(edge.source),
        down=graph.node(edge.target),
        edge=edge,
        head=graph.node(heads[edge.source]),
        inputs=len(streams),
        streams=streams[edge.type_number],
        consumers=len(graph.out_edges(edge.source)),
        is_batch=graph.is_batch,
        settings=plan.program.settings,
    )


_ENTRY = -1
"""An artificial node before all sources, at which a search starts. Node ids are positive."""


def form_chains(plan: Plan) -> Plan:
    """Sets `chains`."""
    heads = required(plan.heads)
    trees = chained_subgraph(plan)
    chains = {}
    for head in sources_of(trees):
        if heads[head] == head:
            chains[head] = _chain(plan, trees, head)
    entries = sorted(heads[source.id] for source in required(plan.stream_graph).sources())
    order = _consumers_first(chains, entries)
    return replace(plan, chains=tuple(chains[head] for head in order))


def every_operator_is_in_one_chain(plan: Plan) -> None:
    """The invariant: every stream node is in exactly one chain."""
    found = [
        node for chain in required(plan.chains) for node in chain.operators + chain.chained_sources
    ]
    expected = {node.id for node in required(plan.stream_graph).nodes()}
    if len(found) != len(expected) or set(found) != expected:
        raise InternalError("the chains do not hold every operator exactly once")


def _chain(plan: Plan, trees: nx.DiGraph[int], head: int) -> Chain:
    graph, chained_edges = required(plan.stream_graph), required(plan.chained_edges)
    children_first = tuple(nx.dfs_postorder_nodes(trees, head))
    return Chain(
        head=head,
        operators=tuple(nx.dfs_preorder_nodes(trees, head)),
        children_first=children_first,
        chained_sources=tuple(
            edge.source
            for edge in graph.in_edges(head)
            if edge.source in required(plan.chained_sources)
        ),
        outputs=tuple(
            edge
            for node in children_first
            for edge in graph.out_edges(node)
            if edge.index not in chained_edges
        ),
    )


def _consumers_first(chains: dict[int, Chain], entries: list[int]) -> Iterator[int]:
    """The heads in depth-first order from the entries in ascending order, each after its consumers.

    networkx.quotient_graph is not used, because it compares every pair of chains.
    """
    quotient: nx.DiGraph[int] = nx.DiGraph()
    quotient.add_edges_from((_ENTRY, head) for head in entries)
    quotient.add_edges_from(
        (head, edge.target) for head, chain in chains.items() for edge in chain.outputs
    )
    order: Iterator[int] = nx.dfs_postorder_nodes(quotient, _ENTRY)
    return (head for head in order if head != _ENTRY)


_FORWARD = Partitioner(PartitionerKind.FORWARD)
_RESCALE = Partitioner(PartitionerKind.RESCALE)
_ONLY_WISHED_FOR = (
    PartitionerKind.FORWARD_FOR_UNSPECIFIED,
    PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH,
)


def set_partitioners(plan: Plan) -> Plan:
    """Sets `partitioners`: the replaced partitioners of stream edges, by edge index.

    Raises:
        JobGraphError: An internal forward partitioner is used outside a dynamic graph.
    """
    graph = required(plan.stream_graph)
    chained_edges, chained_sources = required(plan.chained_edges), required(plan.chained_sources)
    replaced: dict[int, Partitioner] = {}
    for edge in graph.edges():
        kind = edge.partitioner.kind
        if kind not in _ONLY_WISHED_FOR:
            continue
        is_inside_head = edge.source in chained_sources
        if not is_inside_head or kind is PartitionerKind.FORWARD_FOR_CONSECUTIVE_HASH:
            _check_dynamic(graph, edge)
        if is_inside_head:
            continue  # its records never leave the task, and Flink does not change it
        if edge.index in chained_edges:
            replaced[edge.index] = _FORWARD
        elif kind is PartitionerKind.FORWARD_FOR_UNSPECIFIED:
            replaced[edge.index] = _RESCALE
        else:
            replaced[edge.index] = Partitioner(PartitionerKind.HASH, key_by=edge.partitioner.key_by)
    return replace(plan, partitioners=replaced)


def cut_edges_have_real_partitioners(plan: Plan) -> None:
    """The invariant: edges between vertices have no provisional partitioners, and edges inside vertices are forward."""
    chained_edges = required(plan.chained_edges)
    for edge in required(plan.stream_graph).edges():
        partitioner = plan.partitioner(edge.index)
        if edge.index in chained_edges:
            if not partitioner.is_forward:
                raise InternalError(f"chained edge {edge} has partitioner {partitioner.kind.value}")
        elif partitioner.is_forward and partitioner.kind is not PartitionerKind.FORWARD:
            raise InternalError(f"cut edge {edge} still has partitioner {partitioner.kind.value}")


def _check_dynamic(graph: StreamGraph, edge: StreamEdge) -> None:
    if not graph.is_dynamic:
        mode = "a batch job without it" if graph.is_batch else "a streaming job"
        kind = edge.partitioner.kind.value.lower().replace("_", "-")
        raise JobGraphError(
            f"the edge from {graph.node(edge.source).label} to {graph.node(edge.target).label} is "
            f"{kind}, which the adaptive batch scheduler decides on, but this is {mode}; use "
            "forward() or key_by()"
        )
