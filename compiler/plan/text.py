"""The plan as a person wants to read it: vertices, the tree of operators in each, what cuts them.

    vertex 1  x2
      Source: lines  source    clicks.py:12  read positions
      -> split       flat_map  clicks.py:14
         ==> vertex 2  HASH by 'word'
             cut: records move to the task of their key (hash by 'word')

    vertex 2  x4, 128 key groups  <- vertex 1
      count          reduce    clicks.py:15  keyed state, uid 'count'

`->` is a call in the same task, `==>` an exchange between tasks. A chain runs straight down and only a
fork is indented, so that a chain of a hundred operators stays as narrow as one of two.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.plan.layout import (
    DEFAULT_WIDTH,
    Line,
    Paragraph,
    Row,
    counted,
    listed,
    one_line,
    set_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from opchain.compiler.plan.model import JobPlan, PlannedEdge, PlannedOperator, PlannedVertex

_IN_BRACKETS = re.compile(r" \(([^()]*:\d+)\)")


def plan_text(plan: JobPlan, *, width: int = DEFAULT_WIDTH, call_sites: bool = True) -> str:
    """The text form of a plan.

    Args:
        plan: The plan.
        width: Columns at which reasons are broken.
        call_sites: Whether lines of the program are named; golden files leave them out, or every
            edit above an operator would change them.
    """
    lines: list[Line] = [_title(plan)]
    for number, vertex in enumerate(plan.vertices, start=1):
        lines += ["", _with_producers(plan, vertex, vertex_title(plan, vertex, number))]
        lines += _Tree(plan, vertex, call_sites=call_sites).lines()
    return set_lines(lines, width)


def without_call_sites(text: str, call_sites: AbstractSet[str]) -> str:
    """A text without the `(clicks.py:14)` behind each operator's name."""
    return _IN_BRACKETS.sub(lambda found: "" if found[1] in call_sites else found[0], text)


def exchange_text(edge: PlannedEdge) -> str:
    """How records are sent along an edge: `HASH by 'word', blocking, side output 'late'`."""
    parts = [edge.ship_strategy if edge.key is None else f"{edge.ship_strategy} by '{edge.key}'"]
    if edge.result_type not in ("", "PIPELINED_BOUNDED"):
        parts.append(edge.result_type.lower().replace("_", " "))
    if edge.tag is not None:
        parts.append(f"side output '{edge.tag}'")
    return listed(one_line(part, limit=80) for part in parts)


def _title(plan: JobPlan) -> str:
    exchanges = sum(not edge.is_chained for edge in plan.edges)
    return (
        f"job '{one_line(plan.job_name)}', {plan.mode}: "
        f"{counted(len(plan.operators), 'operator')} in "
        f"{counted(len(plan.vertices), 'vertex', 'vertices')}, {counted(exchanges, 'exchange')}"
    )


def vertex_title(plan: JobPlan, vertex: PlannedVertex, number: int) -> str:
    """What a vertex is called and how large it is: `vertex 2  x4, 128 key groups`."""
    size = " auto" if vertex.parallelism == UNSET else str(vertex.parallelism)
    facts = [f"vertex {number}  x{size}"]
    has_keys = any(plan.operator_at[node].keys for node in vertex.nodes)
    if (has_keys and vertex.effective_max_parallelism != UNSET) or vertex.max_parallelism > 1:
        facts.append(counted(vertex.effective_max_parallelism, "key group"))
    if vertex.slot_sharing_group != "default":
        facts.append(f"slot sharing group '{one_line(vertex.slot_sharing_group)}'")
    return listed(facts)


def _with_producers(plan: JobPlan, vertex: PlannedVertex, title: str) -> str:
    producers = [
        f"vertex {plan.vertex_number_of[edge.source]}"
        + (f" (input {edge.input})" if edge.input else "")
        for edge in plan.in_edges[vertex.operators[0]]
        if not edge.is_chained
    ]
    return f"{title}  <- {listed(dict.fromkeys(producers))}" if producers else title


class _Tree:
    """The lines of one vertex."""

    def __init__(self, plan: JobPlan, vertex: PlannedVertex, *, call_sites: bool) -> None:
        self._plan = plan
        self._vertex = vertex
        self._call_sites = call_sites

    def lines(self) -> list[Line]:
        """Chained sources, then the chain from its head down."""
        lines: list[Line] = []
        for position, node in enumerate(self._vertex.chained_sources):
            lines.append(self._operator("  " + ("├─ " if position else "┌─ "), node))
        # A stack and not recursion: a chain may be longer than Python's stack is deep.
        stack = [(self._vertex.operators[0], "  ", "")]
        while stack:
            node, indent, mark = stack.pop()
            lines.append(self._operator(indent + mark, node))
            below = indent + _continued(mark)
            out = self._plan.out_edges[node]
            chained = [edge.target for edge in out if edge.is_chained]
            is_fork = len(chained) > 1
            beside = below + ("│  " if is_fork else "   ")
            lines += self._description(beside, node)
            for edge in out:
                if not edge.is_chained:
                    lines += self._exchange(beside, edge)
            if is_fork:
                branches = [(child, below, "├─ ") for child in chained[:-1]]
                stack += reversed([*branches, (chained[-1], below, "└─ ")])
            elif chained:
                stack.append((chained[0], below, "-> "))
        return lines

    def _operator(self, prefix: str, node: int) -> Row:
        operator = self._plan.operator_at[node]
        call_site = (operator.call_site,) if self._call_sites else ()
        notes = listed(self._notes(operator))
        return Row((prefix + one_line(operator.name), operator.word, *call_site, notes))

    def _notes(self, operator: PlannedOperator) -> Iterable[str]:
        if operator.state is not None:
            yield operator.state
        if operator.uid is not None:
            yield f"uid '{one_line(operator.uid)}'"
        if operator.user_id is not None:
            yield f"uid hash {operator.user_id}"
        for edge in self._plan.in_edges[operator.node]:
            if edge.is_chained and edge.tag is not None:
                yield f"reads side output '{one_line(edge.tag)}'"
        if operator.max_parallelism not in (UNSET, self._vertex.max_parallelism):
            yield f"its max parallelism {operator.max_parallelism} has no effect inside a chain"

    def _description(self, indent: str, node: int) -> list[Line]:
        operator = self._plan.operator_at[node]
        if operator.description is None or operator.description == operator.name:
            return []
        return [Paragraph(indent, "", f'"{one_line(operator.description, limit=400)}"')]

    def _exchange(self, indent: str, edge: PlannedEdge) -> list[Line]:
        which = f", input {edge.input}" if edge.input else ""
        target = f"==> vertex {self._plan.vertex_number_of[edge.target]}{which}"
        lines: list[Line] = [f"{indent}{target}  {exchange_text(edge)}"]
        for rule in edge.not_chained_because:
            reason = rule.reason
            if not self._call_sites:
                reason = without_call_sites(reason, self._plan.call_sites)
            lines.append(Paragraph(f"{indent}    ", "cut: ", reason))
        return lines


def _continued(mark: str) -> str:
    """What stands below a mark: the rail of a fork continues to the next branch, a chain has none."""
    return {"├─ ": "│  ", "└─ ": "   "}.get(mark, "")
