"""The stream graph as text: every operator with where its records go, before anything is chained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.plan.layout import (
    DEFAULT_WIDTH,
    Line,
    Row,
    counted,
    listed,
    one_line,
    set_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.compiler.plan.model import PlannedOperator, PlannedStreamEdge, StreamPlan


def stream_graph_text(
    plan: StreamPlan, *, width: int = DEFAULT_WIDTH, call_sites: bool = True
) -> str:
    """The text form of a stream graph: operators by number, below each its out-edges."""
    title = (
        f"job '{one_line(plan.job_name)}', {plan.mode}: "
        f"{counted(len(plan.operators), 'operator')}, {counted(len(plan.edges), 'edge')}"
    )
    lines: list[Line] = [title, ""]
    out_edges: dict[int, list[PlannedStreamEdge]] = {}
    for edge in plan.edges:
        out_edges.setdefault(edge.source, []).append(edge)
    names = {operator.node: one_line(operator.name) for operator in plan.operators}
    digits = len(str(max(names)))
    for operator in plan.operators:
        call_site = (operator.call_site,) if call_sites else ()
        lines.append(
            Row(
                (
                    f"{operator.node:>{digits + 2}}  {names[operator.node]}",
                    operator.kind,
                    f"x{operator.parallelism}",
                    *call_site,
                    listed(_notes(operator)),
                )
            )
        )
        for edge in out_edges.get(operator.node, ()):
            target = f"{edge.target} {names[edge.target]}"
            lines.append(f"{'':{digits + 4}}--> {target}  {stream_edge_text(edge)}")
    return set_lines(lines, width)


def stream_edge_text(edge: PlannedStreamEdge) -> str:
    """How an edge is drawn: `HASH by 'word', input 2, side output 'late'`."""
    parts = [edge.partitioner if edge.key is None else f"{edge.partitioner} by '{edge.key}'"]
    if edge.input:
        parts.append(f"input {edge.input}")
    if edge.tag is not None:
        parts.append(f"side output '{one_line(edge.tag)}'")
    if edge.exchange_mode != "UNDEFINED":
        parts.append(f"exchange {edge.exchange_mode}")
    return listed(parts)


def _notes(operator: PlannedOperator) -> Iterable[str]:
    if operator.keys:
        yield f"keyed by {listed(repr(key) for key in operator.keys)}"
    if operator.max_parallelism != UNSET:
        yield counted(operator.max_parallelism, "key group")
    if operator.chaining_strategy != "ALWAYS":
        yield f"chaining {operator.chaining_strategy}"
    if operator.slot_sharing_group != "default":
        yield f"slot sharing group '{one_line(operator.slot_sharing_group)}'"
    if operator.uid is not None:
        yield f"uid '{one_line(operator.uid)}'"
    if operator.user_id is not None:
        yield f"uid hash {operator.user_id}"
