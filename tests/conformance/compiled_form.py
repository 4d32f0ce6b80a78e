"""A compiled plan in the shape in which Flink's result is recorded (`expected` of a vector)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.partitioner import ExchangeMode
from opchain.compiler.plan.flink_json import execution_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opchain.compiler.graph.job_graph import ChainedOperator, JobEdge, JobVertex
    from opchain.compiler.graph.stream_graph import StreamEdge, StreamNode
    from opchain.compiler.passes.pipeline import Plan

Form = dict[str, Any]


def compiled_form(plan: Plan, name: str, spec_nodes: Mapping[int, int], with_plan: bool) -> Form:
    """Everything that a vector may record; `spec_nodes` maps transformation ids to spec ids."""
    graph, job_graph = plan.stream_graph, plan.job_graph
    assert graph is not None
    assert job_graph is not None
    form: Form = {
        "name": name,
        "error": None,
        "job_type": "BATCH" if job_graph.is_batch else "STREAMING",
        "dynamic": job_graph.is_dynamic,
        "vertices": [_vertex(vertex, spec_nodes) for vertex in job_graph.vertices],
        "job_graph_order": list(job_graph.creation_order),
        "edges": [_edge(edge) for edge in job_graph.edges],
        "stream_graph": {
            "nodes": [
                _stream_node(plan, node, spec_nodes)
                for node in sorted(graph.nodes(), key=lambda node: node.id)
            ],
            "edges": [
                _stream_edge(plan, edge)
                for edge in sorted(graph.edges(), key=lambda edge: edge.source)
            ],
        },
    }
    if with_plan:
        form["plan"] = execution_plan(plan)
    return form


def _vertex(vertex: JobVertex, spec_nodes: Mapping[int, int]) -> Form:
    effective = vertex.effective_max_parallelism
    form: Form = {
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "max_parallelism": vertex.max_parallelism,
        "effective_max_parallelism": None if effective == -1 else effective,
        "slot_sharing_group": vertex.slot_sharing_group,
        "slot_sharing_group_index": vertex.slot_sharing_group_index,
        "operators": [_operator(each, spec_nodes) for each in vertex.operators],
        "operator_id_order": list(vertex.operator_id_order),
    }
    if vertex.chained_sources:
        form["chained_sources"] = [_operator(each, spec_nodes) for each in vertex.chained_sources]
    return form


def _operator(operator: ChainedOperator, spec_nodes: Mapping[int, int]) -> Form:
    return {
        "operator_id": operator.operator_id,
        "user_defined_operator_id": operator.user_defined_operator_id,
        "node": spec_nodes[operator.node.transformation_id],
        "stream_node": operator.node.id,
        "name": operator.node.name,
    }


def _edge(edge: JobEdge) -> Form:
    form: Form = {
        "from": edge.source_vertex,
        "to": edge.target_vertex,
        "from_stream_node": edge.edge.source,
        "to_stream_node": edge.edge.target,
        "type": edge.edge.type_number,
        "ship_strategy": edge.ship_strategy,
        "distribution_pattern": edge.distribution_pattern.value,
        "result_partition_type": edge.result_partition_type.value,
        "dataset_index": edge.dataset_index,
    }
    if edge.edge.tag is not None:
        form["tag"] = edge.edge.tag.tag_id
    return form


def _stream_node(plan: Plan, node: StreamNode, spec_nodes: Mapping[int, int]) -> Form:
    assert plan.operator_ids is not None
    form: Form = {
        "id": node.id,
        "node": spec_nodes[node.transformation_id],
        "name": node.name,
        "parallelism": node.parallelism,
        "max_parallelism": node.max_parallelism,
        "slot_sharing_group": node.slot_sharing_group,
        "chaining_strategy": node.chaining_strategy.value,
        "hash": plan.operator_ids[node.id],
    }
    if node.parallelism_configured:
        form["parallelism_configured"] = True
    if node.uid is not None:
        form["uid"] = node.uid
    if node.emits_only_at_end:
        form["output_only_after_end_of_stream"] = True
    return form


def _stream_edge(plan: Plan, edge: StreamEdge) -> Form:
    assert plan.stream_graph is not None
    assert plan.chained_edges is not None
    form: Form = {
        "from": edge.source,
        "to": edge.target,
        "type": edge.type_number,
        "partitioner": edge.partitioner.kind.value,
        "chained": edge.index in plan.chained_edges,
    }
    siblings = plan.stream_graph.in_edges(edge.target)
    if len(siblings) > 1:
        form["in_index"] = siblings.index(edge)
    final = plan.partitioner(edge.index)
    if final != edge.partitioner:
        form["partitioner_final"] = final.kind.value
    if edge.exchange_mode is not ExchangeMode.UNDEFINED:
        form["exchange_mode"] = edge.exchange_mode.value
    if edge.tag is not None:
        form["tag"] = edge.tag.tag_id
    return form
