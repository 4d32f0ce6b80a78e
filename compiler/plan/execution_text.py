"""The execution plan as text: stages, the slots and tasks in each, and the channels between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.graph.plan import made
from opchain.compiler.plan.layout import (
    DEFAULT_WIDTH,
    Line,
    Paragraph,
    counted,
    listed,
    one_line,
    set_lines,
)
from opchain.runtime.state.keys.key_groups import key_group_range

if TYPE_CHECKING:
    from opchain.compiler.graph.execution_plan import Exchange, PlacedVertex
    from opchain.compiler.graph.plan import Plan

_MOST_RANGES = 16


def execution_text(plan: Plan, *, width: int = DEFAULT_WIDTH) -> str:
    """Stage by stage: which tasks run there, what they send where, and who owns which keys.

    Tasks, channels and stages count from 0 as in logs and metrics, vertices from 1 as in
    the other stages' text.
    """
    execution, job_graph = made(plan.execution_plan), made(plan.job_graph)
    tasks = sum(stage.parallelism for stage in execution.stages)
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
    first, last = placed.first_task, placed.first_task + placed.parallelism - 1
    return f"task {first}" if first == last else f"tasks {first}-{last}"


def _key_groups(placed: PlacedVertex) -> str:
    """The ranges in the order of the subtasks; of many subtasks the first ones."""
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
