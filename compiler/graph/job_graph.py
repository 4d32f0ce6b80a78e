"""The JobGraph: chains of operators as vertices, and the data sets between them. Also the results of passes over chains.

A vertex has a *tree* of operators with one head. Every edge goes from an operator of one chain to the head of another.
Each result is made by one pass and read by later ones. It refers to stream nodes by id, and to a chain by the id of its
head.

Flink: `JobGraph`, `JobVertex`, `JobEdge`, `IntermediateDataSet`; `OperatorChainInfo`, `JobVertexBuildContext`,
`NonChainedOutput`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx

from opchain.compiler.graph.stream_graph import OrderedEdges, StreamEdge, StreamNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opchain.compiler.graph.partitioner import Partitioner


@dataclass(frozen=True, slots=True)
class Chain:
    """The operators of one vertex: a tree with the root `head`.

    `operators` are in depth-first order from the head, `children_first` in depth-first order with the head last.
    `chained_sources` run inside the head, in the order of its in-edges. `outputs` are the edges that leave the chain.
    Those of chained children come before the operator's own.
    """

    head: int
    operators: tuple[int, ...]
    children_first: tuple[int, ...]
    chained_sources: tuple[int, ...]
    outputs: tuple[StreamEdge, ...]


def chain_text(
    head: int,
    names: Mapping[int, str],
    children: Mapping[int, Sequence[int]],
    comma: str = ", ",
) -> str:
    """A chain on one line, such as `map -> (filter, sink)`, by the numbers of its operators.

    The text is written piece by piece, because joining the texts of subtrees would take quadratic time.
    """
    pieces: list[str] = []
    stack: list[int | str] = [head]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            pieces.append(top)
            continue
        pieces.append(names[top])
        below = children[top]
        if len(below) == 1:
            stack += [below[0], " -> "]
        elif below:
            stack.append(")")
            for child in reversed(below):
                stack += [child, comma]
            stack[-1] = " -> ("
    return "".join(pieces)


class VertexSize(NamedTuple):
    """The number of subtasks of a vertex.

    `parallelism` -1 means that the adaptive scheduler decides, `max_parallelism` -1 that it is not set.
    """

    parallelism: int
    max_parallelism: int


@dataclass(frozen=True, slots=True)
class DataSet:
    """The output of one operator for the consumers that read the same partitions."""

    result_partition_type: ResultPartitionType
    edges: tuple[StreamEdge, ...]


class DistributionPattern(Enum):
    """Which subtasks of a consumer a producer subtask may send to."""

    ALL_TO_ALL = "ALL_TO_ALL"
    POINTWISE = "POINTWISE"


class ResultPartitionType(Enum):
    """How a data set is exchanged, with Flink's names. On Spark, every exchange is blocking."""

    PIPELINED_BOUNDED = "PIPELINED_BOUNDED"
    BLOCKING = "BLOCKING"
    HYBRID_FULL = "HYBRID_FULL"
    HYBRID_SELECTIVE = "HYBRID_SELECTIVE"


@dataclass(frozen=True, slots=True)
class ChainedOperator:
    """An operator in its vertex.

    `inputs` are the edges inside the chain to this operator: one, or none for the head. The head of a vertex with
    chained sources has one per chained source. `user_defined_operator_id` is the uid hash that the user set, in lower
    case. Chained sources have none, because Flink does not list their ids.
    """

    node: StreamNode
    operator_id: str
    user_defined_operator_id: str | None = None
    inputs: tuple[StreamEdge, ...] = ()


@dataclass(frozen=True, slots=True)
class JobVertex:
    """A chain of operators.

    `operators` are in depth-first order from the head, which is the order of the vertex name. `chained_sources` are in
    the order of the in-edges. `operator_id_order` lists stream node ids in depth-first order, head last. `parallelism`
    is -1 if the adaptive scheduler decides, `max_parallelism` -1 if it is not set. `effective_max_parallelism` is then
    the default for the parallelism; -1 if both are open.
    """

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    effective_max_parallelism: int
    slot_sharing_group: str
    slot_sharing_group_index: int
    operators: tuple[ChainedOperator, ...]
    chained_sources: tuple[ChainedOperator, ...] = ()
    operator_id_order: tuple[int, ...] = ()

    @property
    def head(self) -> ChainedOperator:
        """The operator that reads the inputs of the vertex."""
        return self.operators[0]

    @property
    def head_id(self) -> int:
        """The stream node id of the head. It identifies the vertex during compilation."""
        return self.operators[0].node.id

    def chained_edges(self) -> Iterator[StreamEdge]:
        """All edges inside the chain."""
        for operator in self.operators:
            yield from operator.inputs


@dataclass(frozen=True, slots=True)
class JobEdge:
    """An edge between two vertices. Edges of one producer with the same `dataset_index` share a data set.

    `partitioner` is the final one. In dynamic graphs it may differ from that of the stream edge.
    """

    source_vertex: str
    target_vertex: str
    edge: StreamEdge
    partitioner: Partitioner
    distribution_pattern: DistributionPattern
    result_partition_type: ResultPartitionType
    dataset_index: int

    @property
    def ship_strategy(self) -> str:
        """FORWARD, HASH, REBALANCE, ..., as in Flink's plans."""
        return self.partitioner.kind.ship_strategy


@dataclass(frozen=True, slots=True)
class JobGraph:
    """The whole job: the StreamGraph with each chain contracted to a vertex.

    Attributes:
        vertices: The chains, in Flink's topological order.
        edges: The edges between chains, grouped by consumer in the order of its inputs.
        creation_order: The stream node ids of heads, in the order in which Flink creates the vertices.
        graph: The same as a networkx graph. Nodes are vertex ids with the attribute `vertex`. Edges have their index in
            `edges` as key, and the attribute `edge`.
    """

    job_name: str
    is_batch: bool
    is_dynamic: bool
    vertices: tuple[JobVertex, ...]
    edges: tuple[JobEdge, ...]
    creation_order: tuple[int, ...] = ()
    graph: nx.MultiDiGraph[str] = field(init=False, repr=False, compare=False)
    _ordered: OrderedEdges[str, JobEdge] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        graph.add_nodes_from((vertex.id, {"vertex": vertex}) for vertex in self.vertices)
        for order, edge in enumerate(self.edges):
            graph.add_edge(edge.source_vertex, edge.target_vertex, key=order, edge=edge)
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "_ordered", OrderedEdges(graph))

    def vertex(self, vertex_id: str) -> JobVertex:
        """The vertex with an id. Raises KeyError for an unknown id."""
        found: JobVertex = self.graph.nodes[vertex_id]["vertex"]
        return found

    def in_edges(self, vertex_id: str) -> Sequence[JobEdge]:
        """The edges into a vertex in the order of its inputs."""
        return self._ordered.in_edges(vertex_id)

    def out_edges(self, vertex_id: str) -> Sequence[JobEdge]:
        """The edges out of a vertex, grouped by consumer."""
        return self._ordered.out_edges(vertex_id)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """A copy with plain attributes, for analysis and drawing.

        Nodes are vertex ids in topological order, with `name`, `parallelism`, `max_parallelism`, `slot_sharing_group`
        and `operators`, the names of the chained operators. Edges have `ship_strategy`, `result_partition_type`,
        `dataset`, and `order`, their number in Flink's order.
        """
        plain: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=self.job_name)
        for vertex in self.vertices:
            chained = (*vertex.chained_sources, *vertex.operators)
            plain.add_node(
                vertex.id,
                name=vertex.name,
                parallelism=vertex.parallelism,
                max_parallelism=vertex.max_parallelism,
                slot_sharing_group=vertex.slot_sharing_group,
                operators=[operator.node.name for operator in chained],
            )
        for order, edge in enumerate(self.edges):
            plain.add_edge(
                edge.source_vertex,
                edge.target_vertex,
                key=order,
                order=order,
                ship_strategy=edge.ship_strategy,
                result_partition_type=edge.result_partition_type.value,
                dataset=edge.dataset_index,
            )
        return plain
