"""Every edge of a plan: chained, or which rules it breaks and what would chain it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.passes.share_data_sets import PICKLE
from opchain.compiler.plan.layout import (
    DEFAULT_WIDTH,
    Line,
    Paragraph,
    counted,
    one_line,
    set_lines,
)
from opchain.compiler.plan.text import exchange_text, without_call_sites

if TYPE_CHECKING:
    from opchain.compiler.plan.model import JobPlan, PlannedEdge, PlannedOperator


def edges_text(plan: JobPlan, *, width: int = DEFAULT_WIDTH, call_sites: bool = True) -> str:
    """A paragraph per edge, in the order of the program."""
    chained = sum(edge.is_chained for edge in plan.edges)
    title = (
        f"job '{one_line(plan.job_name)}', {plan.mode}: {counted(len(plan.edges), 'edge')}, "
        f"{chained} chained, {len(plan.edges) - chained} not"
    )
    lines: list[Line] = [title, ""]
    for edge in plan.edges:
        lines += edge_lines(plan, edge, call_sites=call_sites)
    return set_lines(lines, width)


def edge_lines(plan: JobPlan, edge: PlannedEdge, *, call_sites: bool = True) -> list[Line]:
    """One edge: its ends, and the broken rules by code, each with its advice."""
    ends = " -> ".join(
        _end(plan.operator_at[node], call_sites=call_sites) for node in (edge.source, edge.target)
    )
    if edge.is_chained:
        return [f"chained      {ends}"]
    pickled = f", {edge.serializer}d" if edge.serializer == PICKLE else ""
    lines: list[Line] = [f"not chained  {ends}  {exchange_text(edge)}{pickled}"]
    for rule in edge.not_chained_because:
        reason, advice = rule.reason, rule.advice
        if not call_sites:
            reason, advice = (
                without_call_sites(text, plan.call_sites) for text in (reason, advice)
            )
        lines.append(Paragraph("    ", f"{rule.code}: ", reason))
        lines.append(Paragraph("        ", "to chain: ", advice))
    return lines


def _end(operator: PlannedOperator, *, call_sites: bool) -> str:
    name = f"'{one_line(operator.name)}'"
    return f"{name} ({operator.call_site})" if call_sites else name
