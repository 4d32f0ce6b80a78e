"""What `assemble_programs` must know of edges: timestamps, the ends of Python chains, and early reduces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.operator_specs import ReduceSpec, TimestampsWatermarksSpec

if TYPE_CHECKING:
    from collections.abc import Collection

    from opchain.compiler.graph.job_graph import JobGraph
    from opchain.compiler.graph.stream_graph import StreamGraph, StreamNode


def edges_with_timestamps(graph: StreamGraph) -> frozenset[int]:
    """The indexes of the edges whose records must carry timestamps: most jobs need them on few, many on none.

    A timestamp is carried if it was made upstream and is read downstream. Flink always carries it. The walk relies on
    producers coming first among the nodes.
    """
    nodes = list(graph.nodes())
    made: dict[int, bool] = {}
    for node in nodes:
        made[node.id] = _makes_timestamps(graph, node) or any(
            made[edge.source] for edge in graph.in_edges(node.id)
        )
    read: dict[int, bool] = {}
    carrying = []
    for node in reversed(nodes):
        out_edges = graph.out_edges(node.id)
        read[node.id] = _reads_timestamps(graph, node) or (
            not _makes_timestamps(graph, node) and any(read[edge.target] for edge in out_edges)
        )
        carrying += [edge.index for edge in out_edges if made[node.id] and read[edge.target]]
    return frozenset(carrying)


def nodes_before_watermarks(graph: StreamGraph) -> frozenset[int]:
    """The nodes with an operator downstream that makes watermarks; none in batch mode."""
    if graph.is_batch:
        return frozenset()
    before: set[int] = set()
    for node in reversed(list(graph.nodes())):
        if node.id in before or _makes_watermarks(node):
            before.update(edge.source for edge in graph.in_edges(node.id))
    return frozenset(before)


def _makes_watermarks(node: StreamNode) -> bool:
    spec = node.spec
    return isinstance(spec, TimestampsWatermarksSpec) and spec.strategy.makes_watermarks


def _reads_timestamps(graph: StreamGraph, node: StreamNode) -> bool:
    """In batch mode the input of a keyed operator is sorted by them."""
    return (graph.is_batch and node.is_keyed) or node.spec.reads_timestamps()


def _makes_timestamps(graph: StreamGraph, node: StreamNode) -> bool:
    """In batch mode a reduce makes them too: its results come at the end of their key's time."""
    return node.spec.makes_timestamps() or (graph.is_batch and isinstance(node.spec, ReduceSpec))


_FUNCTIONS = (specs.MapSpec, specs.FlatMapSpec, specs.FilterSpec, specs.ProcessSpec)
"""The operators with which PyFlink continues such a chain, where they have no key."""

_HEADS = (
    *_FUNCTIONS,
    specs.ReduceSpec,
    specs.KeyedProcessSpec,
    specs.WindowSpec,
    specs.CoMapSpec,
    specs.CoFlatMapSpec,
    specs.CoProcessSpec,
    specs.KeyedCoProcessSpec,
)
"""The operators after which PyFlink continues a chain of Python functions."""


def leaves_python_chain(graph: StreamGraph, node: StreamNode) -> bool:
    """Whether the records of an operator leave PyFlink's chain of Python functions, and so pass through Java.

    Within such a chain a function sees the very object that the function before it returned. At its end PyFlink
    writes the object by its declared type. PyFlink chains a function without a key to the operator before it if both
    have the same parallelism, maximum parallelism and slot sharing group, the edge is a forward one, neither forbids
    chaining, and nothing else reads the operator. Flink: PythonOperatorChainingOptimizer.

    The chains decide the form of records only; vertices are formed by Flink's own rules.
    """
    edges = list(graph.out_edges(node.id))
    if len(edges) != 1 or not isinstance(node.spec, _HEADS):
        return True
    (edge,) = edges
    reader = graph.node(edge.target)
    return not (
        isinstance(reader.spec, _FUNCTIONS)
        and not reader.is_keyed
        and len(list(graph.in_edges(reader.id))) == 1
        and edge.tag is None
        and edge.partitioner.kind.is_forward
        and node.parallelism == reader.parallelism
        and node.max_parallelism == reader.max_parallelism
        and node.slot_sharing_group == reader.slot_sharing_group
        and node.chaining_strategy is not ChainingStrategy.NEVER
        and reader.chaining_strategy is ChainingStrategy.ALWAYS
    )


def combining_vertices(job_graph: JobGraph, with_timestamps: Collection[int]) -> frozenset[str]:
    """The ids of the vertices headed by a reduce whose senders may combine the records of one key.

    In batch mode only the last result of a key is seen, and a reduce must be associative, so each sender may send one
    record per key. This is impossible in three cases: the function is opened or closed, since senders call it as it is;
    records arrive unsorted by key (a forward edge that replaces a hash); records have timestamps, since a key's
    records are then combined in the order of time, whoever sent them. Flink combines in its table runtime only.

    Args:
        job_graph: The graph.
        with_timestamps: The indexes of the edges whose records carry timestamps.
    """
    if not job_graph.is_batch:
        return frozenset()
    return frozenset(
        vertex.id
        for vertex in job_graph.vertices
        if isinstance(vertex.head.node.spec, ReduceSpec)
        and not has_lifecycle(vertex.head.node.spec.function)
        and all(
            edge.partitioner.kind is PartitionerKind.HASH and edge.edge.index not in with_timestamps
            for edge in job_graph.in_edges(vertex.id)
        )
    )
