"""A plan as text for people: its vertices as trees, its edges, its stream graph, its stages and slots, its generated code.

The text of the vertices:

    vertex 1  x2
      Source: lines  source    clicks.py:12  source position
      -> split       flat_map  clicks.py:14
         ==> vertex 2  HASH by 'word', pickled
             not chained: records move to the task of their key (hash by 'word')

    vertex 2  x4, 128 key groups  <- vertex 1
      count          reduce    clicks.py:15  keyed state, uid 'count'

`->` is a call in the same task, and `==>` an exchange between tasks. An exchange is marked as pickled if the type of its
records is not declared. Only a fork is indented, so a chain of a hundred operators is as narrow as one of two.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opchain.compiler.graph.plan import Plan, required
from opchain.compiler.graph.transformation import UNSET
from opchain.compiler.passes.share_data_sets import PICKLE
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
from opchain.runtime.program.vertex_program import FIRST_OUTPUT
from opchain.runtime.state.keys.key_groups import key_group_range

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from opchain.compiler.graph.execution_plan import Exchange, PlacedVertex
    from opchain.compiler.plan.model import (
        JobPlan,
        PlannedEdge,
        PlannedOperator,
        PlannedStreamEdge,
        PlannedVertex,
        StreamPlan,
    )

_IN_BRACKETS = re.compile(r" \(([^()]*:\d+)\)")


def plan_text(plan: JobPlan, *, width: int = DEFAULT_WIDTH, call_sites: bool = True) -> str:
    """The text form of a plan.

    Args:
        plan: The plan.
        width: The column at which reasons are wrapped.
        call_sites: Whether to show lines of the program. Golden files omit them, so an edit above an operator does not
            change them.
    """
    lines: list[Line] = [_title(plan)]
    for number, vertex in enumerate(plan.vertices, start=1):
        lines += ["", _with_producers(plan, vertex, vertex_title(plan, vertex, number))]
        lines += _Tree(plan, vertex, call_sites=call_sites).lines()
    return set_lines(lines, width)


def without_call_sites(text: str, call_sites: AbstractSet[str]) -> str:
    """A text without the `(clicks.py:14)` after each operator's name."""
    return _IN_BRACKETS.sub(lambda found: "" if found[1] in call_sites else found[0], text)


def exchange_text(edge: PlannedEdge) -> str:
    """How records are sent along an edge: `HASH by 'word', blocking, side output 'late'`."""
    parts = [edge.ship_strategy if edge.key is None else f"{edge.ship_strategy} by '{edge.key}'"]
    if edge.result_type not in ("", "PIPELINED_BOUNDED"):
        parts.append(edge.result_type.lower().replace("_", " "))
    if edge.tag is not None:
        parts.append(f"side output '{edge.tag}'")
    return listed(one_line(part, limit=80) for part in parts)


def _pickled(edge: PlannedEdge) -> str:
    return ", pickled" if edge.serializer == PICKLE else ""


def _title(plan: JobPlan) -> str:
    exchanges = sum(not edge.is_chained for edge in plan.edges)
    return (
        f"job '{one_line(plan.job_name)}', {plan.mode}: "
        f"{counted(len(plan.operators), 'operator')} in "
        f"{counted(len(plan.vertices), 'vertex', 'vertices')}, {counted(exchanges, 'exchange')}"
    )


def vertex_title(plan: JobPlan, vertex: PlannedVertex, number: int) -> str:
    """The heading of a vertex: `vertex 2  x4, 128 key groups`."""
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
        # A stack instead of recursion: a chain may be longer than Python's recursion limit.
        stack = [(self._vertex.operators[0], "  ", "")]
        while stack:
            node, indent, mark = stack.pop()
            lines.append(self._operator(indent + mark, node))
            # A vertical line continues if another branch of a fork follows.
            below = indent + {"├─ ": "│  ", "└─ ": "   "}.get(mark, "")
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
        lines: list[Line] = [f"{indent}{target}  {exchange_text(edge)}{_pickled(edge)}"]
        for rule in edge.not_chained_because:
            reason = rule.reason
            if not self._call_sites:
                reason = without_call_sites(reason, self._plan.call_sites)
            lines.append(Paragraph(f"{indent}    ", "not chained: ", reason))
        return lines


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
    """One edge: its ends, and the broken rules by code, each with its remedy."""
    ends = " -> ".join(
        _end(plan.operator_at[node], call_sites=call_sites) for node in (edge.source, edge.target)
    )
    if edge.is_chained:
        return [f"chained      {ends}"]
    lines: list[Line] = [f"not chained  {ends}  {exchange_text(edge)}{_pickled(edge)}"]
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


def stream_graph_text(
    plan: StreamPlan, *, width: int = DEFAULT_WIDTH, call_sites: bool = True
) -> str:
    """The text form of a stream graph: operators by number, each followed by its out-edges."""
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
                    operator.word,
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
    """The text of an edge: `HASH by 'word', input 2, side output 'late'`."""
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


_MOST_RANGES = 16


def execution_text(plan: Plan, *, width: int = DEFAULT_WIDTH) -> str:
    """Stage by stage: the tasks, their channels, and the key groups of each task.

    Tasks, channels and stages are counted from 0, as in logs and metrics; vertices from 1, as in the text of other
    stages.
    """
    execution, job_graph = required(plan.execution_plan), required(plan.job_graph)
    tasks = sum(len(stage.tasks) for stage in execution.stages)
    title = (
        f"job '{one_line(job_graph.job_name)}': {counted(len(execution.stages), 'stage')}, "
        f"{counted(tasks, 'task')}, {counted(len(execution.exchanges), 'exchange')}"
    )
    lines: list[Line] = [title]
    numbers = {vertex.id: number for number, vertex in enumerate(job_graph.vertices, start=1)}
    placed = execution.placed()
    sent_by: dict[str, list[Exchange]] = {vertex_id: [] for vertex_id in placed}
    for exchange in execution.exchanges:
        sent_by[exchange.edge.source_vertex].append(exchange)
    for stage in execution.stages:
        lines += ["", f"stage {stage.index}: {counted(len(stage.slots), 'slot')}"]
        for vertex in stage.vertices:
            lines += _vertex(vertex, numbers[vertex.vertex.id])
            lines += [
                _exchange(exchange, vertex, placed[exchange.edge.target_vertex], numbers)
                for exchange in sent_by[vertex.vertex.id]
            ]
    return set_lines(lines, width)


def _vertex(placed: PlacedVertex, number: int) -> list[Line]:
    lines: list[Line] = [
        Paragraph(
            "  ",
            f"vertex {number}  x{placed.parallelism}, {_tasks(placed)}: ",
            one_line(placed.vertex.name, limit=400),
        )
    ]
    if any(operator.node.is_keyed for operator in placed.vertex.operators):
        lines.append(Paragraph("      ", "key groups: ", _key_groups(placed)))
    return lines


def _tasks(placed: PlacedVertex) -> str:
    first, last = placed.tasks[0], placed.tasks[-1]
    return f"task {first}" if first == last else f"tasks {first}-{last}"


def _key_groups(placed: PlacedVertex) -> str:
    """The ranges of key groups in the order of the subtasks. With many subtasks, only the first ones."""
    shown = min(placed.parallelism, placed.max_parallelism, _MOST_RANGES)
    ranges = [
        key_group_range(placed.max_parallelism, placed.parallelism, subtask)
        for subtask in range(shown)
    ]
    text = listed(f"{owned.first}-{owned.last}" for owned in ranges)
    return text if shown == placed.parallelism else f"{text}, ..."


def _exchange(
    exchange: Exchange, source: PlacedVertex, target: PlacedVertex, numbers: dict[str, int]
) -> Line:
    edge = exchange.edge
    first, last = exchange.channel_base, exchange.channel_base + source.parallelism - 1
    facts = [
        edge.ship_strategy
        + (f" by '{edge.partitioner.key_by.name}'" if edge.partitioner.key_by is not None else ""),
        edge.distribution_pattern.value.lower().replace("_", " "),
        f"channel {first}" if first == last else f"channels {first}-{last}",
    ]
    if edge.edge.type_number:
        facts.append(f"input {edge.edge.type_number}")
    if edge.edge.tag is not None:
        facts.append(f"side output '{one_line(edge.edge.tag.tag_id)}'")
    if target.stage > source.stage + 1:
        facts.append(f"carried through {counted(target.stage - source.stage - 1, 'stage')}")
    where = f"==> vertex {numbers[edge.target_vertex]} in stage {target.stage}, {_tasks(target)}"
    return Paragraph("      ", f"{where}: ", listed(facts))


_INLINED_LINE = re.compile(r"(?:  # |, )[^\s,]+\.py:\d+$", re.MULTILINE)
"""The user's line at the end of a line of an inlined function."""


def generated_text(plan: Plan, vertex: int | None = None, *, call_sites: bool = True) -> str:
    """The generated modules, one after another, each with its vertex as a title.

    With a vertex number (from 1), only its module.

    `call_sites` says whether comments contain lines of the program.

    Raises:
        ValueError: The vertex does not exist.
    """
    modules = generated_modules(plan)
    if not call_sites:
        sites = {str(node.call_site) for node in required(plan.stream_graph).nodes()}
        modules = [_INLINED_LINE.sub("", without_call_sites(module, sites)) for module in modules]
    if vertex is None:
        return "\n\n".join(modules)
    if not 1 <= vertex <= len(modules):
        raise ValueError(
            f"there is no vertex {vertex}: the job has {len(modules)}, numbered from 1"
        )
    return modules[vertex - 1]


def generated_modules(plan: Plan) -> list[str]:
    """The module of each vertex, in the order of the job graph's vertices."""
    programs = {program.vertex_id: program for program in required(plan.job_program).vertices}
    modules = []
    for number, vertex in enumerate(required(plan.job_graph).vertices, start=1):
        source = programs[vertex.id].source
        title = f"# vertex {number}: {one_line(vertex.name, limit=400)}"
        if source is None:
            modules.append(
                f"{title}\n# runs operator by operator: code generation is switched off\n"
            )
        else:
            modules.append(f"{title}\n\n{source}")
    return modules


def remarks_text(plan: Plan) -> str:
    """The remarks of code generation on each operator, vertex by vertex."""
    blocks = []
    for number, vertex in enumerate(required(plan.job_program).vertices, start=1):
        known = dict(vertex.remarks)
        lines = [f"vertex {number}: {one_line(vertex.name, limit=400)}"]
        for operator in vertex.operators:
            lines.append(f"  {operator.name} ({operator.call_site})")
            lines += [f"    {text}" for text in known.get(operator.index, ())]
        for index, output in enumerate(vertex.outputs):
            lines += [
                f"  -> {output.label}: {text}" for text in known.get(FIRST_OUTPUT - index, ())
            ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
