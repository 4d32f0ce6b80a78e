"""The StreamGraph: operators and the edges between them, before any chaining.

Flink: `StreamGraph`, `StreamNode`, `StreamEdge`. Unions, partitionings and side outputs have become
properties of edges. The graph is one `networkx.MultiDiGraph`: nodes are ids with a `StreamNode` under
"node", edges are (source, target, index) with a `StreamEdge` under "edge"; `index` is unique and
ascending in order of creation. Edges of a node come in the order of its consumers (out) and inputs (in).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import networkx as nx

from opchain.compiler.graph.partitioner import ExchangeMode
from opchain.compiler.graph.transformation import UNSET, ChainingStrategy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.graph.call_site import CallSite
    from opchain.compiler.graph.partitioner import KeyBy, Partitioner
    from opchain.runtime.program.operator_specs import OperatorSpec
    from opchain.runtime.types.output_tag import OutputTag


@dataclass(frozen=True, slots=True)
class StreamNode:
    """One operator.

    `transformation_id` is the DSL call that it stems from: a sink's writer and committer share one.
    `key_bys` has an entry per input: the key that state is scoped to, or None.
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
        """Whether state of this operator has a key."""
        return any(key_by is not None for key_by in self.key_bys)

    @property
    def emits_only_at_end(self) -> bool:
        """Whether nothing comes out before the input ends (`isOutputOnlyAfterEndOfStream`)."""
        return self.spec.emits_only_at_end

    @property
    def label(self) -> str:
        """How messages name it: `'Map' (clicks.py:14)`."""
        return f"'{self.name}' ({self.call_site})"


@dataclass(frozen=True, slots=True)
class StreamEdge:
    """An edge; two edges between the same nodes are distinct by `index`.

    `type_number` is 0 for a one-input target, else the number of the input from 1.
    `partitioner_is_explicit` says that the program asked for the partitioner; else it follows from
    the parallelism of both ends.
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
    """The graph and what the job as a whole is.

    `is_batch` and `is_dynamic` are decided when the graph is made (see generate_stream_graph).
    `slot_group_resources` are those registered with the environment, by group name.

    networkx groups the edges of a node by neighbour; Flink's order, which decides operator ids, runs
    across neighbours. So each node's edges are also kept as lists in the order in which they came.
    """

    job_name: str
    is_batch: bool
    is_dynamic: bool
    graph: nx.MultiDiGraph[int] = field(default_factory=nx.MultiDiGraph)
    slot_group_resources: dict[str, Any] = field(default_factory=dict)
    _nodes: dict[int, StreamNode] = field(init=False, repr=False, default_factory=dict)
    _edges: list[StreamEdge] = field(init=False, repr=False, default_factory=list)
    _out_edges: dict[int, list[StreamEdge]] = field(init=False, repr=False, default_factory=dict)
    _in_edges: dict[int, list[StreamEdge]] = field(init=False, repr=False, default_factory=dict)

    def add_node(self, node: StreamNode) -> None:
        """Adds a node; its id must be new."""
        assert node.id not in self._nodes, f"stream node {node.id} exists"
        self.graph.add_node(node.id, node=node)
        self._nodes[node.id] = node
        self._out_edges[node.id] = []
        self._in_edges[node.id] = []

    def add_edge(self, edge: StreamEdge) -> None:
        """Adds an edge between nodes that exist; its index must be the number of edges so far."""
        assert edge.index == len(self._edges), f"edge index {edge.index} is out of turn"
        self.graph.add_edge(edge.source, edge.target, key=edge.index, edge=edge)
        self._edges.append(edge)
        self._out_edges[edge.source].append(edge)
        self._in_edges[edge.target].append(edge)

    def node(self, node_id: int) -> StreamNode:
        """The node of an id; KeyError where there is none."""
        return self._nodes[node_id]

    def edge(self, index: int) -> StreamEdge:
        """The edge of an index; IndexError where there is none."""
        return self._edges[index]

    def nodes(self) -> Iterator[StreamNode]:
        """All nodes in the order of creation: inputs before their consumers."""
        return iter(self._nodes.values())

    def edges(self) -> Iterator[StreamEdge]:
        """All edges, grouped by producer in order of creation, each producer's in out-edge order."""
        for edges in self._out_edges.values():
            yield from edges

    @property
    def edge_count(self) -> int:
        """How many edges there are; also the index of the next one."""
        return len(self._edges)

    def out_edges(self, node_id: int) -> Sequence[StreamEdge]:
        """The out-edges of a node in the order of its consumers."""
        return self._out_edges[node_id]

    def in_edges(self, node_id: int) -> Sequence[StreamEdge]:
        """The in-edges of a node in the order of inputs, union legs in order within one."""
        return self._in_edges[node_id]

    def sources(self) -> list[StreamNode]:
        """Nodes without inputs, in ascending order of id."""
        found = [node for node in self.nodes() if not self._in_edges[node.id]]
        return sorted(found, key=lambda node: node.id)


__all__ = ["UNSET", "ChainingStrategy", "StreamEdge", "StreamGraph", "StreamNode"]
