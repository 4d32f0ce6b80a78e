"""`explain(program, stage, form)` returns a printed form of a program: text, JSON or a drawing.

Drawings are for Graphviz (`dot -Tsvg`), or Mermaid flowcharts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.flink_json import execution_plan
from opchain.compiler.plan.from_plan import job_plan, stream_plan
from opchain.compiler.plan.layout import DEFAULT_WIDTH, listed
from opchain.compiler.plan.model import JobPlan, PlannedEdge, PlannedOperator, StreamPlan, to_json
from opchain.compiler.plan.page.render import compiled_page, plan_page
from opchain.compiler.plan.text import (
    exchange_text,
    execution_text,
    generated_text,
    plan_text,
    stream_edge_text,
    stream_graph_text,
    vertex_title,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.compiler.graph.plan import Plan, Program


@dataclass(frozen=True, slots=True)
class Form:
    """The layout of text: width and call sites. JSON and drawings ignore it."""

    width: int = DEFAULT_WIDTH
    call_sites: bool = True


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage to print: the last pass that it needs, and a printer per format.

    `further` has the formats that need later passes, with the last of these passes.
    """

    until: str
    printers: Mapping[str, Callable[[Plan, Form], str]]
    further: Mapping[str, str] = field(default_factory=dict)


_PRINTERS: Mapping[str, Callable[[JobPlan, Form], str]] = {
    "text": lambda plan, form: plan_text(plan, width=form.width, call_sites=form.call_sites),
    "json": lambda plan, _: to_json(plan),
    "dot": lambda plan, _: plan_dot(plan),
    "mermaid": lambda plan, _: plan_mermaid(plan),
    "html": lambda plan, _: plan_page(plan),
}


def _compiled(printer: Callable[[JobPlan, Form], str]) -> Callable[[Plan, Form], str]:
    return lambda plan, form: printer(job_plan(plan), form)


STAGES: Mapping[str, Stage] = {
    "stream-graph": Stage(
        "operator-ids",
        {
            "text": lambda plan, form: stream_graph_text(
                stream_plan(plan), width=form.width, call_sites=form.call_sites
            ),
            "json": lambda plan, _: to_json(stream_plan(plan)),
            "dot": lambda plan, _: stream_graph_dot(stream_plan(plan)),
            "mermaid": lambda plan, _: stream_graph_mermaid(stream_plan(plan)),
        },
    ),
    "job-graph": Stage(
        "job-graph",
        {
            **{form: _compiled(printer) for form, printer in _PRINTERS.items()},
            "flink-json": lambda plan, _: json.dumps(execution_plan(plan), indent=2) + "\n",
            "html": lambda plan, _: compiled_page(plan),
        },
        further={"html": "generated"},
    ),
    "execution": Stage(
        "execution",
        {"text": lambda plan, form: execution_text(plan, width=form.width)},
    ),
    "generated": Stage(
        "generated", {"text": lambda plan, form: generated_text(plan, call_sites=form.call_sites)}
    ),
}

FORMATS: tuple[str, ...] = ("text", "json", "flink-json", "dot", "mermaid", "html")


def explain(
    program: Program, stage: str = "job-graph", form: str = "text", *, text: Form | None = None
) -> str:
    """A program in a printed form, which ends with a line break.

    Args:
        program: The user's program.
        stage: `stream-graph`, `job-graph`, `execution` or `generated`.
        form: One of FORMATS. Not every stage has every format.
        text: Width and call sites of the text format.

    Raises:
        ValueError: The stage does not exist, or does not have the format.
        GraphError: The program is invalid.
    """
    if stage not in STAGES:
        raise ValueError(f"there is no stage {stage!r}; the stages are {listed(STAGES)}")
    chosen = STAGES[stage]
    printer = chosen.printers.get(form)
    if printer is None:
        raise ValueError(
            f"stage {stage} has no format {form!r}; its formats are {listed(chosen.printers)}"
        )
    until = chosen.further.get(form, chosen.until)
    return printer(compile_program(program, until), text or Form())


def print_saved(plan: JobPlan, stage: str, form: str, text: Form) -> str:
    """A saved plan in a printed form.

    Raises:
        ValueError: The saved plan does not contain what the stage or format needs.
    """
    if stage != "job-graph":
        raise ValueError(
            f"it holds only the job graph, not stage {stage}; pass the program instead"
        )
    if form not in _PRINTERS:
        raise ValueError(
            f"a saved plan has no format {form}, only {listed(_PRINTERS)}; pass the program instead"
        )
    return _PRINTERS[form](plan, text)


def plan_dot(plan: JobPlan) -> str:
    """The drawing in the DOT language."""
    lines = _opened(plan.job_name)
    for number, vertex in enumerate(plan.vertices, start=1):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_dot_quoted(vertex_title(plan, vertex, number))};")
        lines += [f"    {_node(plan.operator_at[node])}" for node in vertex.nodes]
        lines.append("  }")
    lines += [f"  {_dot_edge(edge)}" for edge in plan.edges]
    return "\n".join([*lines, "}"]) + "\n"


def stream_graph_dot(plan: StreamPlan) -> str:
    """The drawing of a stream graph: every edge with its partitioner, without vertices."""
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
    """A string of the DOT language, for any text.

    A backslash starts an escape, and so must be doubled. A line break is a backslash and an n.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# Mermaid has no backslash escapes, so characters with a special meaning are written as entity codes.
_ENTITIES = str.maketrans(
    {char: f"#{ord(char)};" for char in '"#&;<>[]{}()|`\\*_'} | {"\n": " ", "\r": " "}
)


def plan_mermaid(plan: JobPlan) -> str:
    """The chart as text, without Markdown's code fence."""
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
    """The chart of a stream graph: every edge with its partitioner, without vertices."""
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
