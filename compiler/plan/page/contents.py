"""What the page shows of a plan, as values that JSON knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.graph.plan import made
from opchain.compiler.plan.generated_text import generated_modules
from opchain.compiler.plan.text import without_call_sites

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.graph.plan import Plan
    from opchain.compiler.plan.model import JobPlan, PlannedEdge, PlannedVertex

_UNSET = -1


class VertexDetails(NamedTuple):
    """What only a program compiled to its end knows of a vertex: its Spark stage, and its source."""

    stage: int
    code: str


def vertex_details(plan: Plan) -> tuple[VertexDetails, ...]:
    """The details of each vertex, in the order of the job graph's vertices."""
    placed = made(plan.execution_plan).placed()
    stages = [placed[vertex.id].stage for vertex in made(plan.job_graph).vertices]
    return tuple(map(VertexDetails, stages, generated_modules(plan)))


def page_contents(plan: JobPlan, details: Sequence[VertexDetails] = ()) -> dict[str, Any]:
    """Vertices and exchanges in the order of the plan.

    `details` has one entry a vertex, or none: a plan that was saved holds neither stages nor source.
    """
    return {
        "job": plan.job_name,
        "mode": plan.mode,
        "vertices": [
            _vertex(plan, vertex, number, details[number - 1] if details else None)
            for number, vertex in enumerate(plan.vertices, start=1)
        ],
        "exchanges": [_exchange(plan, edge) for edge in plan.edges if not edge.is_chained],
    }


def _vertex(
    plan: JobPlan, vertex: PlannedVertex, number: int, details: VertexDetails | None
) -> dict[str, Any]:
    has_keys = any(plan.operator_at[node].keys for node in vertex.nodes)
    return {
        "number": number,
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": _set(vertex.parallelism),
        "maxParallelism": _set(vertex.max_parallelism),
        "keyGroups": _set(vertex.effective_max_parallelism) if has_keys else None,
        "slotSharingGroup": vertex.slot_sharing_group,
        "stage": None if details is None else details.stage,
        "code": None if details is None else details.code,
        "operators": list(_operators(plan, vertex)),
    }


def _operators(plan: JobPlan, vertex: PlannedVertex) -> Iterator[dict[str, Any]]:
    """The tree from its head down, behind the sources that run inside the head.

    `depth` counts the forks above an operator: as in the text form, a chain runs straight down.
    """
    for node in vertex.chained_sources:
        yield _operator(plan, node, "source", 0)
    # A stack and not recursion: a chain may be longer than Python's stack is deep.
    stack = [(vertex.operators[0], "head", 0)]
    while stack:
        node, role, depth = stack.pop()
        yield _operator(plan, node, role, depth)
        chained = [edge.target for edge in plan.out_edges[node] if edge.is_chained]
        if len(chained) > 1:
            stack += [(child, "branch", depth + 1) for child in reversed(chained)]
        else:
            stack += [(child, "next", depth) for child in chained]


def _operator(plan: JobPlan, node: int, role: str, depth: int) -> dict[str, Any]:
    operator = plan.operator_at[node]
    reads = [edge.tag for edge in plan.in_edges[node] if edge.is_chained and edge.tag is not None]
    return {
        "node": node,
        "id": operator.id,
        "name": operator.name,
        "kind": operator.kind,
        "callSite": operator.call_site,
        "uid": operator.uid,
        "uidHash": operator.user_id,
        "state": operator.state,
        "keys": list(operator.keys),
        "description": None if operator.description == operator.name else operator.description,
        "sideOutputs": reads,
        "role": role,
        "depth": depth,
    }


def _exchange(plan: JobPlan, edge: PlannedEdge) -> dict[str, Any]:
    return {
        "source": plan.vertex_number_of[edge.source],
        "target": plan.vertex_number_of[edge.target],
        "from": edge.source,
        "to": edge.target,
        "input": edge.input,
        "strategy": edge.ship_strategy,
        "key": edge.key,
        "sideOutput": edge.tag,
        "pattern": edge.pattern,
        "resultType": edge.result_type,
        "reasons": [
            {
                "code": rule.code,
                "brief": without_call_sites(rule.reason, plan.call_sites),
                "reason": rule.reason,
                "advice": rule.advice,
            }
            for rule in edge.not_chained_because
        ],
    }


def _set(number: int) -> int | None:
    return None if number == _UNSET else number
