from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from random_jobs import RandomJob, draw_job, random_jobs

from opchain.common import Configuration
from opchain.compiler.graph.execution_plan import PlacedVertex
from opchain.compiler.graph.plan import required
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.passes.place_stages import shared_slots
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.dataframe_source import DataFrameSource


def dataframe(*, never_ends: bool = False) -> Any:
    schema = SimpleNamespace(jsonValue=lambda: {"type": "struct", "fields": []})
    return SimpleNamespace(schema=schema, isStreaming=never_ends, _jdf=None)


def placed(*vertices: tuple[str, int] | tuple[str, int, Any]) -> list[PlacedVertex]:
    """Vertices of one stage by group, parallelism, and the DataFrame that they read, if they do."""
    found: list[PlacedVertex] = []
    first_task = 10
    for group, parallelism, *rows in vertices:
        spec = SimpleNamespace(source=DataFrameSource(rows[0]) if rows else None)
        head = SimpleNamespace(node=SimpleNamespace(spec=spec))
        vertex: Any = SimpleNamespace(slot_sharing_group=group, head=head)
        found.append(PlacedVertex(vertex, 0, first_task, parallelism, 128))
        first_task += parallelism
    return found


@pytest.mark.parametrize(
    ("vertices", "slots"),
    [
        ([("default", 3)], ((10,), (11,), (12,))),
        ([("default", 2), ("default", 2)], ((10, 12), (11, 13))),
        ([("default", 1), ("default", 3), ("default", 2)], ((10, 11, 14), (12, 15), (13,))),
        ([("default", 2), ("other", 1), ("default", 1)], ((10, 13), (11,), (12,))),
        ([("b", 1), ("a", 2)], ((10,), (11,), (12,))),
    ],
    ids=["one vertex", "two alike", "three sizes", "a group between", "groups as they come"],
)
def test_a_slot_sharing_group_has_as_many_slots_as_its_widest_vertex(
    vertices: Any, slots: Any
) -> None:
    assert shared_slots(placed(*vertices)) == slots


def test_vertices_that_read_dataframes_have_their_own_slots() -> None:
    """A partition of Spark's brings the rows of one DataFrame."""
    one, other = ("default", 2, dataframe()), ("default", 1, dataframe())
    vertices = placed(("default", 2), one, other, ("default", 1))
    assert shared_slots(vertices) == ((10, 15), (11,), (12,), (13,), (14,))


def test_vertices_that_read_unbounded_rows_share_slots() -> None:
    vertices = placed(("default", 2), ("default", 2, dataframe(never_ends=True)))
    assert shared_slots(vertices) == ((10, 12), (11, 13))


def test_the_slot_sharing_group_is_the_one_that_the_program_sets(
    env: Any, source: Any, compiled: Any
) -> None:
    top = source(env, "in").set_parallelism(1)
    top.rebalance().map(int).name("a").set_parallelism(2)
    top.rebalance().map(int).name("b").set_parallelism(2)
    top.rebalance().map(int).name("c").set_parallelism(2).slot_sharing_group("apart")
    plan = compiled(env, "execution").execution_plan
    assert [stage.slots for stage in plan.stages] == [((0,),), ((1, 3), (2, 4), (5,), (6,))]


@settings(max_examples=20)
@given(job=random_jobs())
def test_slots_of_random_jobs_mix_no_subtasks_of_a_vertex_and_no_groups(job: RandomJob) -> None:
    configuration = Configuration()
    configuration.set_string("execution.runtime-mode", job.keys["mode"])
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    partial(draw_job, job)(env)
    plan = compile_program(env.program())
    stages = zip(
        required(plan.execution_plan).stages, required(plan.job_program).stages, strict=True
    )
    for stage, program in stages:
        assert program.slots == stage.slots
        vertex_of = {
            vertex.first_task + subtask: vertex.vertex
            for vertex in stage.vertices
            for subtask in range(vertex.parallelism)
        }
        for slot in stage.slots:
            vertices = [vertex_of[task] for task in slot]
            assert list(slot) == sorted(slot)
            assert len({vertex.id for vertex in vertices}) == len(slot)
            assert len({vertex.slot_sharing_group for vertex in vertices}) == 1
