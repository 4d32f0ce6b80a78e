"""Edges between vertices -> data sets: how each is exchanged, and which consumers share one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opchain.compiler.graph.job_graph import Chain, DataSet, ResultPartitionType
from opchain.compiler.graph.partitioner import ExchangeMode, PartitionerKind
from opchain.compiler.graph.plan import JobGraphError, Plan, required
from opchain.runtime.errors import InternalError
from opchain.runtime.program.operator_specs import SinkCommitterSpec

if TYPE_CHECKING:
    from collections.abc import Hashable

    from opchain.compiler.graph.stream_graph import StreamEdge

_PIPELINED = ResultPartitionType.PIPELINED_BOUNDED
_BLOCKING = ResultPartitionType.BLOCKING
_HYBRID_FULL = ResultPartitionType.HYBRID_FULL
_HYBRID_SELECTIVE = ResultPartitionType.HYBRID_SELECTIVE

_HYBRIDS = (_HYBRID_FULL, _HYBRID_SELECTIVE)

_BY_EXCHANGE_MODE = {
    ExchangeMode.PIPELINED: _PIPELINED,
    ExchangeMode.BATCH: _BLOCKING,
    ExchangeMode.HYBRID_FULL: _HYBRID_FULL,
    ExchangeMode.HYBRID_SELECTIVE: _HYBRID_SELECTIVE,
}
_BY_SHUFFLE_MODE = {
    "ALL_EXCHANGES_PIPELINED": _PIPELINED,
    "ALL_EXCHANGES_BLOCKING": _BLOCKING,
    "ALL_EXCHANGES_HYBRID_FULL": _HYBRID_FULL,
    "ALL_EXCHANGES_HYBRID_SELECTIVE": _HYBRID_SELECTIVE,
}


@dataclass(slots=True)
class _Output:
    result_partition_type: ResultPartitionType
    edges: list[StreamEdge]


PICKLE = "pickle"
"""The serializer of records without a declared type."""


def serializer_of(plan: Plan, edge: StreamEdge) -> str:
    """The declared type of an edge's records as text, or PICKLE."""
    if edge.tag is not None:
        declared = edge.tag.type_info
    else:
        declared = required(plan.stream_graph).node(edge.source).output_type
    text = "" if declared is None else str(declared)
    return PICKLE if not text or "Pickle" in text else text


def share_data_sets(plan: Plan) -> Plan:
    """Sets `data_sets`: the data sets of each vertex in the order of its edges.

    Raises:
        JobGraphError: `disable_generic_types()` forbids to pickle the records of an edge; an exchange is hybrid in
            streaming mode; or an operator has a buffer timeout, but its output is only read when it is complete.
    """
    if not plan.program.settings.generic_types:
        for chain in required(plan.chains):
            for edge in chain.outputs:
                _refuse_pickles(plan, edge)
    data_sets = {chain.head: _share(plan, chain) for chain in required(plan.chains)}
    return replace(plan, data_sets=data_sets)


def every_cut_edge_reads_one_data_set(plan: Plan) -> None:
    """The invariant: each edge between vertices reads exactly one data set."""
    data_sets = required(plan.data_sets)
    for chain in required(plan.chains):
        read = [edge.index for data_set in data_sets[chain.head] for edge in data_set.edges]
        if sorted(read) != sorted(edge.index for edge in chain.outputs):
            raise InternalError(f"the data sets of chain {chain.head} do not match its outputs")


def _share(plan: Plan, chain: Chain) -> tuple[DataSet, ...]:
    silent_until_end = _silent_until_end(plan, chain)
    outputs: list[_Output] = []
    shareable: dict[Hashable, _Output] = {}
    for edge in chain.outputs:
        kind = _result_partition_type(plan, edge, is_silent=edge.source in silent_until_end)
        if kind is _PIPELINED:
            outputs.append(_Output(kind, [edge]))
            continue
        key = _sharing_key(plan, edge, kind)
        output = shareable.get(key)
        if output is None:
            outputs.append(_Output(kind, [edge]))
            shareable[key] = outputs[-1]
        else:
            output.edges.append(edge)
            if kind in _HYBRIDS:
                output.result_partition_type = _HYBRID_FULL
    return tuple(DataSet(output.result_partition_type, tuple(output.edges)) for output in outputs)


def _sharing_key(plan: Plan, edge: StreamEdge, kind: ResultPartitionType) -> Hashable:
    partitioner = plan.partitioner(edge.index)
    return (
        edge.source,  # a data set belongs to one operator of a vertex
        kind in _HYBRIDS,
        required(plan.vertex_sizes)[edge.target],
        None if edge.tag is None else edge.tag.tag_id,
        partitioner.kind,
        partitioner.key_by,
        id(partitioner.custom),
    )


def _silent_until_end(plan: Plan, chain: Chain) -> set[int]:
    """The operators of a chain that emit nothing before the input ends.

    All operators downstream of such an operator emit nothing before the end either. Those upstream of it count as such,
    too. Siblings do not: Flink marks operators on the way down, then on the way up.
    """
    graph, chained_edges = required(plan.stream_graph), required(plan.chained_edges)
    emitting_at_end = {node for node in chain.operators if graph.node(node).emits_only_at_end}
    if not emitting_at_end:
        return emitting_at_end
    parents = {
        node: edge.source
        for node in chain.operators[1:]
        for edge in graph.in_edges(node)
        if edge.index in chained_edges
    }
    below = set(emitting_at_end)
    for node in chain.operators:  # parents first
        if parents.get(node) in below:
            below.add(node)
    silent = set(below)
    for node in chain.children_first:
        if node in silent and node in parents:
            silent.add(parents[node])
    return silent


def _result_partition_type(plan: Plan, edge: StreamEdge, *, is_silent: bool) -> ResultPartitionType:
    graph, settings = required(plan.stream_graph), plan.program.settings
    if edge.exchange_mode is not ExchangeMode.UNDEFINED:
        kind = _BY_EXCHANGE_MODE[edge.exchange_mode]
    elif is_silent:
        return _BLOCKING
    elif not graph.is_batch:
        return _PIPELINED
    elif graph.slot_group_resources:
        kind = _BLOCKING  # with pipelined exchanges, vertices could wait for each other's resources forever
    else:
        kind = _BY_SHUFFLE_MODE[settings.batch_shuffle_mode]
    if kind in _HYBRIDS and not graph.is_batch:
        raise JobGraphError(
            f"{_between(plan, edge)} has a hybrid exchange, which needs batch mode; set the "
            "runtime mode to BATCH, or another exchange mode"
        )
    if kind is _BLOCKING:
        _check_buffer_timeout(plan, edge)
    if kind is _HYBRID_SELECTIVE and plan.partitioner(edge.index).kind is PartitionerKind.BROADCAST:
        return _HYBRID_FULL
    return kind


def _check_buffer_timeout(plan: Plan, edge: StreamEdge) -> None:
    source = required(plan.stream_graph).node(edge.source)
    if source.buffer_timeout is not None and source.buffer_timeout >= 0:
        raise JobGraphError(
            f"{source.label} has a buffer timeout of {source.buffer_timeout} ms, but "
            f"{_between(plan, edge)} is blocking: nothing is read until everything is written; "
            f"remove set_buffer_timeout(), or "
            "use a pipelined shuffle mode"
        )


def _refuse_pickles(plan: Plan, edge: StreamEdge) -> None:
    if isinstance(required(plan.stream_graph).node(edge.target).spec, SinkCommitterSpec):
        return  # the committables of a sink's writer for its committer
    if serializer_of(plan, edge) == PICKLE:
        source = required(plan.stream_graph).node(edge.source)
        raise JobGraphError(
            f"{_between(plan, edge)} would pickle its records, and pipeline.generic-types is false: declare the type of "
            f"{source.label} with output_type or type_info, for example Types.TUPLE([Types.STRING(), Types.LONG()])"
        )


def _between(plan: Plan, edge: StreamEdge) -> str:
    graph = required(plan.stream_graph)
    return f"the edge from {graph.node(edge.source).label} to {graph.node(edge.target).label}"
