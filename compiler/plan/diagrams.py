"""Graphs as Graphviz drawings (`dot -Tsvg`) and as Mermaid flowcharts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.plan.text import exchange_text, stream_edge_text, vertex_title

if TYPE_CHECKING:
    from opchain.compiler.plan.model import JobPlan, PlannedEdge, PlannedOperator, StreamPlan


def plan_dot(plan: JobPlan) -> str:
    """The drawing as text of the dot language."""
    lines = _opened(plan.job_name)
    for number, vertex in enumerate(plan.vertices, start=1):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_dot_quoted(vertex_title(plan, vertex, number))};")
        lines += [f"    {_node(plan.operator_at[node])}" for node in vertex.nodes]
        lines.append("  }")
    lines += [f"  {_dot_edge(edge)}" for edge in plan.edges]
    return "\n".join([*lines, "}"]) + "\n"


def stream_graph_dot(plan: StreamPlan) -> str:
    """The drawing of a stream graph: no vertices yet, every edge with its partitioner."""
    lines = _opened(plan.job_name)
    lines += [f"  {_node(operator)}" for operator in plan.operators]
    for edge in plan.edges:
        label = _dot_quoted(stream_edge_text(edge))
        lines.append(f"  n{edge.source} -> n{edge.target} [label={label}];")
    return "\n".join([*lines, "}"]) + "\n"


def _opened(name: str) -> list[str]:
    return [
        f"digraph {_dot_quoted(name)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
    ]


def _node(operator: PlannedOperator) -> str:
    label = f"{operator.name}\n{operator.word}"
    return f"n{operator.node} [label={_dot_quoted(label)}];"


def _dot_edge(edge: PlannedEdge) -> str:
    if edge.is_chained:
        label = f" [label={_dot_quoted(exchange_text(edge))}]" if edge.tag else ""
        return f"n{edge.source} -> n{edge.target}{label};"
    reasons = "\n".join(rule.reason for rule in edge.not_chained_because)
    return (
        f"n{edge.source} -> n{edge.target} [style=dashed, "
        f"label={_dot_quoted(exchange_text(edge))}, tooltip={_dot_quoted(reasons)}];"
    )


def _dot_quoted(text: str) -> str:
    """A string of the dot language, whatever the user's names hold.

    A backslash starts an escape there and must be doubled; a line break is one.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# Mermaid knows no backslash: what may end a label or be read as markup goes as an entity code.
_ENTITIES = str.maketrans(
    {char: f"#{ord(char)};" for char in '"#&;<>[]{}()|`\\*_'} | {"\n": " ", "\r": " "}
)


def plan_mermaid(plan: JobPlan) -> str:
    """The chart as text, without the fence that Markdown wants around it."""
    lines = ["flowchart LR"]
    for number, vertex in enumerate(plan.vertices, start=1):
        title = _mermaid_quoted(vertex_title(plan, vertex, number))
        lines.append(f"  subgraph vertex{number}[{title}]")
        for node in vertex.nodes:
            operator = plan.operator_at[node]
            lines.append(f"    n{node}[{_mermaid_quoted(operator.name)}]")
        lines.append("  end")
    lines += [f"  {_mermaid_edge(edge)}" for edge in plan.edges]
    return "\n".join(lines) + "\n"


def stream_graph_mermaid(plan: StreamPlan) -> str:
    """The chart of a stream graph: no vertices yet, every edge with its partitioner."""
    lines = ["flowchart LR"]
    lines += [
        f"  n{operator.node}[{_mermaid_quoted(operator.name)}]" for operator in plan.operators
    ]
    for edge in plan.edges:
        label = _mermaid_quoted(stream_edge_text(edge))
        lines.append(f"  n{edge.source} -->|{label}| n{edge.target}")
    return "\n".join(lines) + "\n"


def _mermaid_edge(edge: PlannedEdge) -> str:
    if edge.is_chained:
        label = f"|{_mermaid_quoted(exchange_text(edge))}|" if edge.tag else ""
        return f"n{edge.source} -->{label} n{edge.target}"
    return f"n{edge.source} -.->|{_mermaid_quoted(exchange_text(edge))}| n{edge.target}"


def _mermaid_quoted(text: str) -> str:
    return f'"{text.translate(_ENTITIES)}"'
