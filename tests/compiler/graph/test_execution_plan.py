from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from opchain.compiler.graph.execution_plan import ExecutionPlan, PlacedVertex, Stage


def placed(name: str, stage: int, first_task: int, parallelism: int) -> PlacedVertex:
    vertex: Any = SimpleNamespace(id=name)
    return PlacedVertex(vertex, stage, first_task, parallelism, 128)


A, B, C = placed("a", 0, 0, 3), placed("b", 1, 3, 2), placed("c", 1, 5, 4)
PLAN = ExecutionPlan(
    (
        Stage(0, (A,), ((0,), (1,), (2,))),
        Stage(1, (B, C), ((3, 5), (4, 6), (7,), (8,))),
    ),
    (),
)


def test_a_stage_has_the_tasks_of_its_vertices() -> None:
    first, second = PLAN.stages
    assert first.tasks == range(3)
    assert second.tasks == range(3, 9)


def test_vertices_are_found_by_id() -> None:
    assert PLAN.placed() == {"a": A, "b": B, "c": C}
