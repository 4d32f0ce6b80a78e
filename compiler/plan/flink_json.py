"""Plans and stream graphs as Flink's JSON, which Flink's plan visualizer and web interface read.

Flink: `JsonPlanGenerator.generatePlan` with the descriptions of `StreamingJobGraphGenerator.setVertexDescription`, and
`JSONGenerator` of `StreamExecutionEnvironment.getExecutionPlan`.
"""

from __future__ import annotations

from html.entities import codepoint2name
from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.job_graph import chain_text
from opchain.compiler.graph.plan import Plan, required
from opchain.runtime.program.operator_specs import LegacySinkSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.graph.job_graph import ChainedOperator, JobGraph, JobVertex
    from opchain.compiler.graph.stream_graph import StreamEdge, StreamGraph, StreamNode


# The HTML 4 entities, as in Flink's StringEscapeUtils.escapeHtml4.
_ENTITIES = {code: f"&{name};" for code, name in codepoint2name.items()}
_NO_JOB_ID = "0" * 32


def execution_plan(plan: Plan) -> dict[str, Any]:
    """Flink's JSON plan of a compiled plan: a node per vertex, consumers before their producers.

    `jid` is all zeros: a plan that has not been submitted has no job id.
    """
    job_graph = required(plan.job_graph)
    mode = plan.program.settings.vertex_description_mode
    by_head = {vertex.head_id: vertex for vertex in job_graph.vertices}
    return {
        "jid": _NO_JOB_ID,
        "name": job_graph.job_name,
        "type": "BATCH" if job_graph.is_batch else "STREAMING",
        "nodes": [
            _node(job_graph, by_head[head], _DESCRIBE[mode](by_head[head]))
            for head in job_graph.creation_order
        ],
    }


def _node(job_graph: JobGraph, vertex: JobVertex, description: str) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": vertex.id,
        "operator": "",
        "parallelism": vertex.parallelism,
        "operator_strategy": "",
        "description": _as_html(description),
        "optimizer_properties": {},
    }
    inputs = [
        {
            "id": edge.source_vertex,
            "num": number,
            "exchange": edge.result_partition_type.value.lower(),
            "ship_strategy": edge.ship_strategy,
        }
        for number, edge in enumerate(job_graph.in_edges(vertex.id))
    ]
    if inputs:
        node["inputs"] = inputs
    return node


def _as_html(description: str) -> str:
    escaped = description.translate(_ENTITIES)
    return escaped.replace("\n", "<br/>").replace("\\", "&#92;")


def _tree_description(vertex: JobVertex) -> str:
    """A line per operator, indented below the operator that it is chained to."""
    children = _children(vertex)
    lines: list[str] = []
    stack = [(vertex.head, "", "")]
    while stack:
        operator, own_prefix, prefix_below = stack.pop()
        lines.append(f"{own_prefix}{_description(vertex, operator)}\n")
        below = children[operator.node.id]
        for child in reversed(below):
            branch, indent = ("+- ", "   ") if child is below[-1] else (":- ", ":  ")
            stack.append((child, prefix_below + branch, prefix_below + indent))
    return "".join(lines)


def _cascading_description(vertex: JobVertex) -> str:
    """One line, like a vertex name, but with descriptions, and with spaces around the commas."""
    return chain_text(
        vertex.head.node.id,
        {operator.node.id: _description(vertex, operator) for operator in vertex.operators},
        {
            number: [operator.node.id for operator in below]
            for number, below in _children(vertex).items()
        },
        comma=" , ",
    )


_DESCRIBE = {"TREE": _tree_description, "CASCADING": _cascading_description}


def _children(vertex: JobVertex) -> dict[int, Sequence[ChainedOperator]]:
    """The chained operators of each operator. Operators are in depth-first order, so siblings are in order."""
    children: dict[int, list[ChainedOperator]] = {
        operator.node.id: [] for operator in vertex.operators
    }
    for operator in vertex.operators[1:]:
        children[operator.inputs[0].source].append(operator)
    return dict(children)


def _description(vertex: JobVertex, operator: ChainedOperator) -> str:
    own = _text(operator)
    if operator is not vertex.head or not vertex.chained_sources:
        return own
    return f"{own} [{', '.join(_text(source) for source in vertex.chained_sources)}]"


def _text(operator: ChainedOperator) -> str:
    return operator.node.description or operator.node.name


def streaming_plan(graph: StreamGraph) -> dict[str, Any]:
    """Flink's JSON of a stream graph: a node per operator by number, sinks of `add_sink` last.

    As in Flink, a Sink of `sink_to` is an "Operator", and only a SinkFunction is a "Data Sink".
    """
    nodes = sorted(graph.nodes(), key=lambda node: (_is_sink(node), node.id))
    return {"nodes": [_stream_node(graph, node) for node in nodes]}


def _stream_node(graph: StreamGraph, node: StreamNode) -> dict[str, Any]:
    edges = graph.in_edges(node.id)
    found: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": _pact(node, has_inputs=bool(edges)),
        "contents": node.description or node.name,
        "parallelism": node.parallelism,
    }
    if edges:
        found["predecessors"] = [_predecessor(edge) for edge in edges]
    return found


def _predecessor(edge: StreamEdge) -> dict[str, Any]:
    # Flink counts the inputs after adding one, so every input is the second.
    return {
        "id": edge.source,
        "ship_strategy": edge.partitioner.kind.ship_strategy,
        "side": "second",
    }


def _pact(node: StreamNode, *, has_inputs: bool) -> str:
    if not has_inputs:
        return "Data Source"
    return "Data Sink" if _is_sink(node) else "Operator"


def _is_sink(node: StreamNode) -> bool:
    return isinstance(node.spec, LegacySinkSpec)
