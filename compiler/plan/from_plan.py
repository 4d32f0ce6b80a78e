"""Converts a compiled plan to the model for printing and saving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.graph.plan import Plan, required
from opchain.compiler.passes.chain_operators import why_not_chained
from opchain.compiler.passes.share_data_sets import serializer_of
from opchain.compiler.plan.model import (
    BrokenRule,
    JobPlan,
    PlannedEdge,
    PlannedOperator,
    PlannedStreamEdge,
    PlannedVertex,
    StreamPlan,
)
from opchain.compiler.settings.settings_reader import key_of
from opchain.runtime.checkpoint.source_numbers import source_kind
from opchain.runtime.functions.callables import CallableFunction
from opchain.runtime.functions.state import CheckpointedFunction
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.graph.job_graph import JobEdge, JobVertex
    from opchain.compiler.graph.partitioner import Partitioner
    from opchain.compiler.graph.stream_graph import StreamEdge, StreamNode
    from opchain.compiler.settings.job_settings import JobSettings


KEYED_STATE = "keyed state"

_ALWAYS: dict[type[specs.OperatorSpec], str] = {
    specs.SourceSpec: "source position",
    specs.InputFormatSourceSpec: "source position",
    specs.AsyncWaitSpec: "records in flight",
    specs.ReduceSpec: KEYED_STATE,
    specs.WindowSpec: KEYED_STATE,
    specs.FullWindowSpec: KEYED_STATE,
    specs.IntervalJoinSpec: KEYED_STATE,
    specs.BroadcastProcessSpec: "broadcast state",
    specs.KeyedBroadcastProcessSpec: "keyed and broadcast state",
    specs.SinkCommitterSpec: "uncommitted output",
}


def state_kind(node: StreamNode) -> str | None:
    """The state of an operator in a savepoint. None if it cannot have state.

    A function with a runtime context may create keyed state on a keyed stream at run time. This is not visible in
    advance, so the operator counts as stateful. A plain callable has no such context.
    """
    always = _ALWAYS.get(type(node.spec))
    if always is not None:
        return always
    function = getattr(node.spec, "function", None)
    if isinstance(function, CheckpointedFunction):
        return "operator state"
    if node.is_keyed and function is not None and not isinstance(function, CallableFunction):
        return KEYED_STATE
    return None


def job_plan(plan: Plan) -> JobPlan:
    """The model of a plan that has a job graph."""
    graph, job_graph = required(plan.stream_graph), required(plan.job_graph)
    ids = required(plan.operator_ids)
    job_edges = {edge.edge.index: edge for edge in job_graph.edges}
    return JobPlan(
        job_name=job_graph.job_name,
        mode="BATCH" if job_graph.is_batch else "STREAMING",
        is_dynamic=job_graph.is_dynamic,
        settings=changed_settings(plan.program.settings),
        vertices=tuple(_vertex(vertex) for vertex in job_graph.vertices),
        operators=tuple(_operator(node, ids[node.id]) for node in graph.nodes()),
        edges=tuple(_edge(plan, edge, job_edges.get(edge.index)) for edge in graph.edges()),
    )


def stream_plan(plan: Plan) -> StreamPlan:
    """The model of a plan with operator ids, even if it cannot become a job graph."""
    graph, ids = required(plan.stream_graph), required(plan.operator_ids)
    return StreamPlan(
        job_name=graph.job_name,
        mode="BATCH" if graph.is_batch else "STREAMING",
        is_dynamic=graph.is_dynamic,
        operators=tuple(_operator(node, ids[node.id]) for node in graph.nodes()),
        edges=tuple(
            PlannedStreamEdge(
                source=edge.source,
                target=edge.target,
                input=edge.type_number,
                partitioner=edge.partitioner.kind.value,
                key=key_name(edge.partitioner),
                tag=None if edge.tag is None else edge.tag.tag_id,
                exchange_mode=edge.exchange_mode.value,
            )
            for edge in graph.edges()
        ),
    )


def key_name(partitioner: Partitioner) -> str | None:
    """The name of the key of an exchange; None without a key."""
    return None if partitioner.key_by is None else partitioner.key_by.name


def _vertex(vertex: JobVertex) -> PlannedVertex:
    return PlannedVertex(
        id=vertex.id,
        name=vertex.name,
        parallelism=vertex.parallelism,
        max_parallelism=vertex.max_parallelism,
        effective_max_parallelism=vertex.effective_max_parallelism,
        slot_sharing_group=vertex.slot_sharing_group,
        operators=tuple(operator.node.id for operator in vertex.operators),
        chained_sources=tuple(operator.node.id for operator in vertex.chained_sources),
    )


def _operator(node: StreamNode, operator_id: str) -> PlannedOperator:
    return PlannedOperator(
        node=node.id,
        id=operator_id,
        user_id=node.uid_hash,
        uid=node.uid,
        name=node.name,
        kind=node.spec.kind,
        parallelism=node.parallelism,
        max_parallelism=node.max_parallelism,
        slot_sharing_group=node.slot_sharing_group,
        chaining_strategy=node.chaining_strategy.value,
        state=state_kind(node),
        keys=tuple(key_by.name for key_by in node.key_bys if key_by is not None),
        key_types=tuple(key_by.type_text for key_by in node.key_bys if key_by is not None),
        description=node.description,
        buffer_timeout=node.buffer_timeout,
        source=source_kind(node.spec),
        topics=_topics(node.spec),
        call_site=str(node.call_site),
    )


def _topics(spec: specs.OperatorSpec) -> str | None:
    """The topics of a source or sink, if it has any."""
    connector = getattr(spec, "source", None) or getattr(spec, "sink", None)
    return getattr(connector, "topics", None)


def changed_settings(settings: JobSettings) -> dict[str, str]:
    """The configuration keys with values other than the default."""
    found = {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if value == field.get_default(call_default_factory=True) or name in _NOT_SHOWN:
            continue
        if isinstance(value, dict):
            found.update({f"{key_of(name)}.{key}": str(value[key]) for key in sorted(value)})
        else:
            found[key_of(name)] = str(value)
    return found


_NOT_SHOWN = ("job_name", "parallelism", "job_parameters")
"""Settings that the plan shows elsewhere, or that may contain secrets."""


def _edge(plan: Plan, edge: StreamEdge, job_edge: JobEdge | None) -> PlannedEdge:
    partitioner = plan.partitioner(edge.index)
    tag = None if edge.tag is None else edge.tag.tag_id
    if job_edge is None:
        return PlannedEdge(
            source=edge.source,
            target=edge.target,
            input=edge.type_number,
            is_chained=True,
            ship_strategy=partitioner.kind.ship_strategy,
            key=key_name(partitioner),
            tag=tag,
        )
    return PlannedEdge(
        source=edge.source,
        target=edge.target,
        input=edge.type_number,
        is_chained=False,
        ship_strategy=job_edge.ship_strategy,
        key=key_name(partitioner),
        tag=tag,
        serializer=serializer_of(plan, edge),
        pattern=job_edge.distribution_pattern.value,
        result_type=job_edge.result_partition_type.value,
        data_set=job_edge.dataset_index,
        not_chained_because=tuple(
            BrokenRule(code=reason.code, reason=reason.text, advice=reason.remedy)
            for reason in why_not_chained(plan, edge)
        ),
    )
