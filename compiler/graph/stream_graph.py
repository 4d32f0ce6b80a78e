"""The StreamGraph: operators and the edges between them, before chaining.

Unions, partitionings and side outputs are properties of edges. Flink: `StreamGraph`, `StreamNode`, `StreamEdge`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import networkx as nx

from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, Partitioner
from opchain.compiler.graph.transformation import UNSET, CallSite, ChainingStrategy

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from opchain.runtime.program.operator_specs import OperatorSpec
    from opchain.runtime.types.output_tag import OutputTag

E = TypeVar("E")
N = TypeVar("N", bound="Hashable")


@dataclass(frozen=True, slots=True)
class StreamNode:
    """One operator.

    `transformation_id` is the id of the DSL call that created it. The writer and the committer of a sink share one.
    `key_bys` has an entry per input: the key that scopes the state, or None.
    """

    id: int
    transformation_id: int
    name: str
    spec: OperatorSpec
    parallelism: int
    parallelism_configured: bool
    max_parallelism: int
    slot_sharing_group: str
    chaining_strategy: ChainingStrategy
    call_site: CallSite
    key_bys: tuple[KeyBy | None, ...] = ()
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    buffer_timeout: int | None = None
    output_type: Any = None

    @property
    def is_keyed(self) -> bool:
        """Whether the state of this operator is keyed."""
        return any(key_by is not None for key_by in self.key_bys)

    @property
    def emits_only_at_end(self) -> bool:
        """Whether the operator emits nothing before the input ends (Flink: `isOutputOnlyAfterEndOfStream`)."""
        return self.spec.emits_only_at_end

    @property
    def label(self) -> str:
        """The operator in messages: `'Map' (clicks.py:14)`."""
        return f"'{self.name}' ({self.call_site})"


@dataclass(frozen=True, slots=True)
class StreamEdge:
    """An edge. `index` distinguishes edges between the same nodes.

    `type_number` is 0 for a target with one input, else the number of the input, from 1. `partitioner_is_explicit`
    means that the program sets the partitioner. Otherwise it depends on the parallelism of both ends.
    """

    index: int
    source: int
    target: int
    type_number: int
    partitioner: Partitioner
    exchange_mode: ExchangeMode = ExchangeMode.UNDEFINED
    tag: OutputTag[Any] | None = None
    partitioner_is_explicit: bool = False


@dataclass(slots=True)
class StreamGraph:
    """The operators of a program and their edges, as a networkx graph.

    Attributes:
        is_batch: Whether the job runs in BATCH mode. The pass generate_stream_graph decides.
        is_dynamic: Whether the adaptive scheduler may choose parallelisms, as in Flink's batch jobs.
        graph: Nodes are stream node ids with the attribute `node`. Edges have the key `index`, in the order of
            creation, and the attribute `edge`.
        slot_group_resources: The resources registered with the environment, by group name.
    """

    job_name: str
    is_batch: bool
    is_dynamic: bool
    graph: nx.MultiDiGraph[int] = field(default_factory=nx.MultiDiGraph)
    slot_group_resources: dict[str, Any] = field(default_factory=dict)
    _by_index: list[StreamEdge] = field(init=False, repr=False, default_factory=list)
    _ordered: OrderedEdges[int, StreamEdge] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._ordered = OrderedEdges(self.graph)

    def add_node(self, node: StreamNode) -> None:
        """Adds a node. Its id must be new."""
        assert node.id not in self.graph, f"stream node {node.id} exists"
        self.graph.add_node(node.id, node=node)

    def add_edge(self, edge: StreamEdge) -> None:
        """Adds an edge between existing nodes. Its index must be the number of edges so far."""
        assert edge.index == len(self._by_index), f"edge index {edge.index} is out of order"
        self.graph.add_edge(edge.source, edge.target, key=edge.index, edge=edge)
        self._by_index.append(edge)
        self._ordered.forget(edge.source, edge.target)

    def node(self, node_id: int) -> StreamNode:
        """The node with an id. Raises KeyError for an unknown id."""
        found: StreamNode = self.graph.nodes[node_id]["node"]
        return found

    def edge(self, index: int) -> StreamEdge:
        """The edge with an index. Raises IndexError for an unknown index."""
        return self._by_index[index]

    def nodes(self) -> Iterator[StreamNode]:
        """All nodes in the order of creation: inputs before their consumers."""
        return map(self.node, self.graph)

    def edges(self) -> Iterator[StreamEdge]:
        """All edges, grouped by producer in the order of creation, each group in out-edge order."""
        for node_id in self.graph:
            yield from self.out_edges(node_id)

    @property
    def edge_count(self) -> int:
        """The number of edges, which is also the index of the next one."""
        return len(self._by_index)

    def out_edges(self, node_id: int) -> Sequence[StreamEdge]:
        """The out-edges of a node in the order of its consumers."""
        return self._ordered.out_edges(node_id)

    def in_edges(self, node_id: int) -> Sequence[StreamEdge]:
        """The in-edges of a node in the order of inputs. The streams of a union keep their order."""
        return self._ordered.in_edges(node_id)

    def sources(self) -> list[StreamNode]:
        """Nodes without inputs, in ascending order of id."""
        return [self.node(node_id) for node_id in sorted(sources_of(self.graph))]

    def to_networkx(self) -> nx.MultiDiGraph[int]:
        """A copy with plain attributes, for analysis and drawing.

        Nodes have `name`, `uid`, `parallelism`, `max_parallelism`, `operator` (the class of the spec without "Spec"),
        and `call_site`. Edges have `partitioner`, `tag`, and `order`, their number in Flink's order.
        """
        plain: nx.MultiDiGraph[int] = nx.MultiDiGraph(name=self.job_name)
        for node in self.nodes():
            plain.add_node(
                node.id,
                name=node.name,
                uid=node.uid,
                parallelism=node.parallelism,
                max_parallelism=node.max_parallelism,
                operator=type(node.spec).__name__.removesuffix("Spec"),
                call_site=str(node.call_site),
            )
        for edge in self._by_index:
            plain.add_edge(
                edge.source,
                edge.target,
                key=edge.index,
                order=edge.index,
                partitioner=edge.partitioner.kind.value,
                tag=None if edge.tag is None else edge.tag.tag_id,
            )
        return plain


class OrderedEdges(Generic[N, E]):
    """The edges of each node of a graph in Flink's order, which is the order of their keys.

    networkx groups the edges of a node by neighbour. Flink's order is not grouped, and operator ids depend on it. Each
    list is sorted on first use.
    """

    def __init__(self, graph: nx.MultiDiGraph[N]) -> None:
        self._graph = graph
        self._out: dict[N, list[E]] = {}
        self._in: dict[N, list[E]] = {}

    def out_edges(self, node: N) -> Sequence[E]:
        """The attribute `edge` of the out-edges of a node."""
        if node not in self._out:
            self._out[node] = _sorted(self._graph.out_edges(node, keys=True, data="edge"))
        return self._out[node]

    def in_edges(self, node: N) -> Sequence[E]:
        """The attribute `edge` of the in-edges of a node."""
        if node not in self._in:
            self._in[node] = _sorted(self._graph.in_edges(node, keys=True, data="edge"))
        return self._in[node]

    def forget(self, source: N, target: N) -> None:
        """Drops the sorted lists that a new edge changes."""
        self._out.pop(source, None)
        self._in.pop(target, None)


def _sorted(edges: Iterable[tuple[Any, Any, int, E]]) -> list[E]:
    return [edge for _, _, _, edge in sorted(edges, key=itemgetter(2))]


def sources_of(graph: nx.DiGraph[N]) -> list[N]:
    """The nodes without inputs, in the order of the graph."""
    return [node for node, inputs in graph.in_degree() if not inputs]


__all__ = [
    "UNSET",
    "ChainingStrategy",
    "OrderedEdges",
    "StreamEdge",
    "StreamGraph",
    "StreamNode",
    "sources_of",
]
