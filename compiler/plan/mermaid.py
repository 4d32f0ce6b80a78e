"""Graphs as Mermaid flowcharts, which Markdown on GitHub and GitLab draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.plan.stream_graph_text import stream_edge_text
from opchain.compiler.plan.text import exchange_text, vertex_title

if TYPE_CHECKING:
    from opchain.compiler.plan.model import JobPlan, PlannedEdge, StreamPlan

# Mermaid knows no backslash: what may end a label or be read as markup goes as an entity code.
_ENTITIES = str.maketrans(
    {char: f"#{ord(char)};" for char in '"#&;<>[]{}()|`\\*_'} | {"\n": " ", "\r": " "}
)


def plan_mermaid(plan: JobPlan) -> str:
    """The chart as text, without the fence that Markdown wants around it."""
    lines = ["flowchart LR"]
    for number, vertex in enumerate(plan.vertices, start=1):
        title = _quoted(vertex_title(plan, vertex, number))
        lines.append(f"  subgraph vertex{number}[{title}]")
        for node in vertex.nodes:
            operator = plan.operator_at[node]
            lines.append(f"    n{node}[{_quoted(operator.name)}]")
        lines.append("  end")
    lines += [f"  {_edge(edge)}" for edge in plan.edges]
    return "\n".join(lines) + "\n"


def stream_graph_mermaid(plan: StreamPlan) -> str:
    """The chart of a stream graph: no vertices yet, every edge with its partitioner."""
    lines = ["flowchart LR"]
    lines += [f"  n{operator.node}[{_quoted(operator.name)}]" for operator in plan.operators]
    for edge in plan.edges:
        label = _quoted(stream_edge_text(edge))
        lines.append(f"  n{edge.source} -->|{label}| n{edge.target}")
    return "\n".join(lines) + "\n"


def _edge(edge: PlannedEdge) -> str:
    if edge.is_chained:
        label = f"|{_quoted(exchange_text(edge))}|" if edge.tag else ""
        return f"n{edge.source} -->{label} n{edge.target}"
    return f"n{edge.source} -.->|{_quoted(exchange_text(edge))}| n{edge.target}"


def _quoted(text: str) -> str:
    return f'"{text.translate(_ENTITIES)}"'
