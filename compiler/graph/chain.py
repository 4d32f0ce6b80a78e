"""What the passes find out about chains on the way from the StreamGraph to the JobGraph.

Flink keeps the same in `OperatorChainInfo`, `JobVertexBuildContext` and `NonChainedOutput`. Here each
is a value that one pass makes and later ones read; stream nodes go by id, a chain by its head's id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opchain.compiler.graph.job_graph import ResultPartitionType
    from opchain.compiler.graph.stream_graph import StreamEdge


@dataclass(frozen=True, slots=True)
class Chain:
    """The operators that will share a vertex: a tree below `head`.

    `operators` come depth first from the head, `children_first` depth first with the head last;
    `chained_sources` run inside the head, in the order of its in-edges. `outputs` are the edges that
    leave the chain: those of chained children before the operator's own.
    """

    head: int
    operators: tuple[int, ...]
    children_first: tuple[int, ...]
    chained_sources: tuple[int, ...]
    outputs: tuple[StreamEdge, ...]


class VertexSize(NamedTuple):
    """How many subtasks a vertex has.

    `parallelism` -1 is left to the adaptive scheduler, `max_parallelism` -1 is not set.
    """

    parallelism: int
    max_parallelism: int


@dataclass(frozen=True, slots=True)
class DataSet:
    """What one operator hands over to the consumers that read the same partitions."""

    result_partition_type: ResultPartitionType
    edges: tuple[StreamEdge, ...]
