"""Program, the input of the compiler; Plan, the result of its passes; and the errors of the passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from opchain.runtime.errors import GraphError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.compiler.graph.execution_plan import ExecutionPlan
    from opchain.compiler.graph.job_graph import Chain, DataSet, JobGraph, VertexSize
    from opchain.compiler.graph.partitioner import Partitioner
    from opchain.compiler.graph.stream_graph import StreamGraph
    from opchain.compiler.graph.transformation import Transformation
    from opchain.compiler.settings.job_settings import JobSettings
    from opchain.runtime.program.vertex_program import JobProgram

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Program:
    """A user's program: the transformations in the order of the calls, and the settings.

    `next_id` is the first free id for stream nodes; translating a sink needs some. `epoch_listeners` stay on the
    driver. `unused_keys` are the keys of the configuration that have no effect, with the reasons.
    """

    transformations: tuple[Transformation, ...]
    settings: JobSettings
    next_id: int
    slot_group_resources: dict[str, Any] = field(default_factory=dict)
    cached_files: tuple[tuple[str, str, bool], ...] = ()
    epoch_listeners: tuple[Callable[[Any], object], ...] = ()
    unused_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The intermediate result of the compiler. Each pass sets one or two fields, and leaves the others unchanged.

    Stream nodes are identified by id, stream edges by index, chains and vertices by the id of their head.
    `chained_edges` are all edges inside chains, including those from `chained_sources`, which run inside the head.
    `heads` maps every node to the head of its chain. `partitioners` has the edges whose partitioner differs from the
    stream graph's. `chains` are in the order in which Flink creates the vertices; `vertex_order` is topological.
    """

    program: Program
    stream_graph: StreamGraph | None = None
    chained_edges: frozenset[int] | None = None
    chained_sources: frozenset[int] | None = None
    heads: Mapping[int, int] | None = None
    operator_ids: Mapping[int, str] | None = None
    partitioners: Mapping[int, Partitioner] | None = None
    chains: tuple[Chain, ...] | None = None
    vertex_sizes: Mapping[int, VertexSize] | None = None
    data_sets: Mapping[int, tuple[DataSet, ...]] | None = None
    vertex_order: tuple[int, ...] | None = None
    slot_groups: Mapping[int, int] | None = None
    vertex_names: Mapping[int, str] | None = None
    job_graph: JobGraph | None = None
    execution_plan: ExecutionPlan | None = None
    job_program: JobProgram | None = None

    def partitioner(self, edge_index: int) -> Partitioner:
        """The final partitioner of an edge."""
        replaced = required(self.partitioners).get(edge_index)
        return replaced or required(self.stream_graph).edge(edge_index).partitioner


def required(field_of_plan: T | None) -> T:
    """A field of the plan that an earlier pass has set.

    Raises:
        InternalError: No pass has set it.
    """
    if field_of_plan is None:
        raise InternalError("a compiler pass ran before the pass that produces its input")
    return field_of_plan


class StreamGraphError(GraphError):
    """The transformations cannot become a StreamGraph. Flink's `StreamGraphGenerator` refuses them too.

    What to do: Correct the operator that the message names.
    """

    phase: ClassVar[str] = "stream_graph"


class JobGraphError(GraphError):
    """The StreamGraph cannot become a JobGraph. Flink's `StreamingJobGraphGenerator` refuses it too.

    What to do: Correct the operator that the message names.
    """

    phase: ClassVar[str] = "job_graph"
