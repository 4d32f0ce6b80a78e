"""The plan as a Graphviz drawing: a box per vertex, its operators in it. Try `dot -Tsvg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.plan.text import exchange_text, vertex_title

if TYPE_CHECKING:
    from opchain.compiler.plan.model import JobPlan, PlannedEdge


def plan_dot(plan: JobPlan) -> str:
    """The drawing as text of the dot language."""
    lines = [
        f"digraph {_quoted(plan.job_name)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
    ]
    for number, vertex in enumerate(plan.vertices, start=1):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted(vertex_title(plan, vertex, number))};")
        for node in vertex.nodes:
            operator = plan.operator_at[node]
            label = f"{operator.name}\n{operator.kind}"
            lines.append(f"    n{node} [label={_quoted(label)}];")
        lines.append("  }")
    lines += [f"  {_edge(edge)}" for edge in plan.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _edge(edge: PlannedEdge) -> str:
    if edge.is_chained:
        label = f" [label={_quoted('side output ' + repr(edge.tag))}]" if edge.tag else ""
        return f"n{edge.source} -> n{edge.target}{label};"
    reasons = "\n".join(rule.reason for rule in edge.not_chained_because)
    return (
        f"n{edge.source} -> n{edge.target} [style=dashed, "
        f"label={_quoted(exchange_text(edge))}, tooltip={_quoted(reasons)}];"
    )


def _quoted(text: str) -> str:
    """A string of the dot language, whatever the user's names hold.

    A backslash starts an escape there and must be doubled; a line break is one.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
