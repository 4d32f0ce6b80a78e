"""Finds the reduces whose senders may fold records of one key into one before they send them.

In batch mode only the last result of a key is seen, and a reduce must be associative, so the way to it
may be shorter: one record per key and sender is sent. It does not where the function is opened or
closed, since senders call it as it is, where records come without being sorted by key (a forward
that stands for a hash), or where they have timestamps: a key's records are then folded in the order of
time, whoever sent them. Flink combines in its table runtime only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.program.operator_specs import ReduceSpec

if TYPE_CHECKING:
    from collections.abc import Collection

    from opchain.compiler.graph.job_graph import JobGraph


def combining_vertices(job_graph: JobGraph, with_timestamps: Collection[int]) -> frozenset[str]:
    """The ids of the vertices that such a reduce heads.

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
