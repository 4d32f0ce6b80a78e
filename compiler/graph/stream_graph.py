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
    from collections.abc import Iterator

    from opchain.compiler.graph.call_site import CallSite
    from opchain.compiler.graph.partitioner import KeyBy, Partitioner
    from opchain.runtime.operators.specs import OperatorSpec
    from opchain.runtime.output_tag import OutputTag


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


@dataclass(frozen=True, slots=True)
class StreamEdge:
    """An edge; two edges between the same nodes are distinct by `index`.

    `type_number` is 0 for a one-input target, else the number of the input from 1.
    """

    index: int
    source: int
    target: int
    type_number: int
    partitioner: Partitioner
    exchange_mode: ExchangeMode = ExchangeMode.UNDEFINED
    tag: OutputTag | None = None


@dataclass(slots=True)
class StreamGraph:
    """The graph and what the job as a whole is.

    `is_batch` and `is_dynamic` are decided when the graph is made (see generate_stream_graph).
    `slot_group_resources` are those registered with the environment, by group name.
    """

    job_name: str
    is_batch: bool
    is_dynamic: bool
    graph: nx.MultiDiGraph[int] = field(default_factory=nx.MultiDiGraph)
    slot_group_resources: dict[str, Any] = field(default_factory=dict)

    def add_node(self, node: StreamNode) -> None:
        """Adds a node; its id must be new."""
        self.graph.add_node(node.id, node=node)

    def add_edge(self, edge: StreamEdge) -> None:
        """Adds an edge between nodes that exist."""
        self.graph.add_edge(edge.source, edge.target, key=edge.index, edge=edge)

    def node(self, node_id: int) -> StreamNode:
        """The node of an id; KeyError where there is none."""
        node: StreamNode = self.graph.nodes[node_id]["node"]
        return node

    def nodes(self) -> Iterator[StreamNode]:
        """All nodes in the order of creation."""
        return (data["node"] for _, data in self.graph.nodes(data=True))

    def edges(self) -> Iterator[StreamEdge]:
        """All edges, grouped by producer in order of creation, each producer's in out-edge order."""
        for node_id in self.graph:
            yield from self.out_edges(node_id)

    def out_edges(self, node_id: int) -> list[StreamEdge]:
        """The out-edges of a node in the order of its consumers."""
        found = [data["edge"] for *_, data in self.graph.out_edges(node_id, data=True)]
        return sorted(found, key=_by_index)

    def in_edges(self, node_id: int) -> list[StreamEdge]:
        """The in-edges of a node in the order of inputs, union legs in order within one."""
        found = [data["edge"] for *_, data in self.graph.in_edges(node_id, data=True)]
        return sorted(found, key=_by_index)

    def sources(self) -> list[StreamNode]:
        """Nodes without inputs, in ascending order of id."""
        return sorted(
            (node for node in self.nodes() if not self.graph.in_degree(node.id)),
            key=lambda node: node.id,
        )


def _by_index(edge: StreamEdge) -> int:
    return edge.index


__all__ = ["UNSET", "ChainingStrategy", "StreamEdge", "StreamGraph", "StreamNode"]
