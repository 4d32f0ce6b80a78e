"""Where PyFlink's chains of Python functions end, so that records pass through Java.

Within such a chain a function sees the very object that the function before it returned. At its end PyFlink
writes the object by its declared type. PyFlink chains a function without a key to the operator before it if both
have the same parallelism, maximum parallelism and slot sharing group, the edge is a forward one, neither forbids
chaining, and nothing else reads the operator. Flink: PythonOperatorChainingOptimizer.

The chains decide the form of records only; vertices are formed by Flink's own rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.graph.stream_graph import StreamGraph, StreamNode

_FUNCTIONS = (specs.MapSpec, specs.FlatMapSpec, specs.FilterSpec, specs.ProcessSpec)
"""What may go on a chain, where it has no key."""

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
"""What a chain may go on behind."""


def leaves_python_chain(graph: StreamGraph, node: StreamNode) -> bool:
    """Whether the records of an operator leave its chain of Python functions."""
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
