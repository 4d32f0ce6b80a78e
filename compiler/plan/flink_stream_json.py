"""A stream graph as Flink's own JSON, which Flink's plan visualizer reads: operators before chaining.

Flink: `JSONGenerator`, behind `StreamExecutionEnvironment.getExecutionPlan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.specs import LegacySinkSpec

if TYPE_CHECKING:
    from opchain.compiler.graph.stream_graph import StreamEdge, StreamGraph, StreamNode


def streaming_plan(graph: StreamGraph) -> dict[str, Any]:
    """Flink's JSON of a stream graph: a node per operator by number, sinks of `add_sink` last.

    A Sink of `sink_to` is an operator to Flink, too: only SinkFunctions are a "Data Sink".
    """
    nodes = sorted(graph.nodes(), key=lambda node: (_is_sink(node), node.id))
    return {"nodes": [_node(graph, node) for node in nodes]}


def _node(graph: StreamGraph, node: StreamNode) -> dict[str, Any]:
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
    # Flink counts the inputs after it has added one, and so calls each of them the second.
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
