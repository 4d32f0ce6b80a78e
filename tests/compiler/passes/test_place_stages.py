from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from random_jobs import RandomJob, draw_job, random_jobs

from opchain.common import Configuration
from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.passes.place_stages import exchanges_go_forward
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.execution_plan import ExecutionPlan
    from opchain.compiler.graph.plan import Plan


def stages(plan: Plan) -> list[list[str]]:
    """The heads of each stage's vertices, in alphabetical order."""
    assert plan.execution_plan is not None
    return [
        sorted(placed.vertex.head.node.name for placed in stage.vertices)
        for stage in plan.execution_plan.stages
    ]


def moved(stream: Any, name: str) -> Any:
    """One more vertex."""
    return stream.rebalance().map(int).name(name)


def test_vertices_in_a_line_have_a_stage_each(env: Any, source: Any, compiled: Any) -> None:
    moved(moved(source(env, "in"), "a"), "b")
    assert stages(compiled(env, "execution")) == [["Source: in"], ["a"], ["b"]]


def test_both_sides_of_a_diamond_are_in_one_stage(env: Any, source: Any, compiled: Any) -> None:
    top = source(env, "in")
    moved(moved(top, "left").union(moved(top, "right")), "end")
    assert stages(compiled(env, "execution")) == [["Source: in"], ["left", "right"], ["end"]]


def test_a_source_is_in_the_stage_before_its_consumer(env: Any, source: Any, compiled: Any) -> None:
    """Else all of its records would be carried through the stages between."""
    long = moved(moved(source(env, "long"), "a"), "b")
    moved(long.union(source(env, "late")), "end")
    assert stages(compiled(env, "execution")) == [
        *(["Source: long"], ["a"], ["Source: late", "b"]),
        ["end"],
    ]


def test_a_source_is_in_the_stage_before_its_first_consumer(
    env: Any, source: Any, compiled: Any
) -> None:
    early = source(env, "early")
    long = moved(moved(early, "a"), "b")
    moved(long.union(early), "end")
    assert stages(compiled(env, "execution")) == [["Source: early"], ["a"], ["b"], ["end"]]


def test_a_vertex_that_gathers_inputs_follows_its_producers(
    env: Any, source: Any, compiled: Any
) -> None:
    """A vertex with fewer outputs than inputs carries less behind it than before it."""
    gathered = moved(source(env, "x").union(source(env, "y")), "gather")
    long = moved(moved(moved(source(env, "long"), "a"), "b"), "c")
    moved(gathered.union(long), "end")
    assert stages(compiled(env, "execution")) == [
        ["Source: long", "Source: x", "Source: y"],
        *(["a", "gather"], ["b"], ["c"], ["end"]),
    ]


def test_tasks_are_numbered_stage_by_stage(env: Any, source: Any, compiled: Any) -> None:
    top = source(env, "in").set_parallelism(3)
    moved(top, "a").set_parallelism(2)
    moved(top, "b").set_parallelism(5)
    plan = compiled(env, "execution").execution_plan
    tasks = {
        placed.vertex.head.node.name: (placed.first_task, placed.parallelism)
        for placed in plan.placed().values()
    }
    assert tasks == {"Source: in": (0, 3), "a": (3, 2), "b": (5, 5)}
    assert [stage.tasks for stage in plan.stages] == [range(3), range(3, 10)]


def test_channels_of_a_consumer_are_numbered_across_its_inputs(
    env: Any, source: Any, compiled: Any
) -> None:
    three, two = source(env, "x").set_parallelism(3), source(env, "y").set_parallelism(2)
    moved(two.union(three, two.rebalance()), "end")
    exchanges = compiled(env, "execution").execution_plan.exchanges
    sizes = [exchange.edge.edge.source for exchange in exchanges]
    assert sorted(sizes) == [1, 2, 2]
    width = {1: 3, 2: 2}
    assert [exchange.channel_base for exchange in exchanges] == [
        *(0, width[sizes[0]], width[sizes[0]] + width[sizes[1]])
    ]


@pytest.mark.parametrize(
    ("draw", "label"),
    [
        (lambda s: s.rebalance().map(int).name("a"), "a (rebalance)"),
        (lambda s: s.key_by(len).map(int).name("a"), "a (hash by len)"),
        (lambda s: s.key_by(lambda x: x).map(int).name("a"), "a (hash by key)"),
        (lambda s: s.start_new_chain().map(int).name("a").disable_chaining(), "a (forward)"),
        (lambda s: s.partition_custom(max, len).map(int).name("a"), "a (custom by len)"),
    ],
)
def test_an_exchange_has_the_name_of_its_consumer(
    env: Any, source: Any, compiled: Any, draw: Any, label: str
) -> None:
    draw(source(env).map(int))
    exchanges = compiled(env, "execution").execution_plan.exchanges
    assert exchanges[-1].label == label


def test_undefined_parallelisms_become_the_environments(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    source(batch_env, "in").key_by(str).reduce(max).name("few").set_max_parallelism(3)
    plan = compiled(batch_env, "execution", scheduler="AdaptiveBatch")
    placed = plan.execution_plan.placed().values()
    sizes = {p.vertex.head.node.name: (p.parallelism, p.max_parallelism) for p in placed}
    assert sizes["Source: in"] == (4, 128)
    assert sizes["few"] == (3, 3)


def test_the_invariant_finds_wrong_stages(env: Any, source: Any, compiled: Any) -> None:
    moved(source(env), "a")
    plan = compiled(env, "execution")
    first, second = plan.execution_plan.stages
    (vertex,) = second.vertices
    backwards = replace(
        plan.execution_plan,
        stages=(first, replace(second, vertices=(replace(vertex, stage=0),))),
    )
    with pytest.raises(InternalError, match="an edge to an earlier stage"):
        exchanges_go_forward(replace(plan, execution_plan=backwards))
    with pytest.raises(InternalError, match="left a vertex without a stage"):
        exchanges_go_forward(
            replace(plan, execution_plan=replace(plan.execution_plan, stages=(first,)))
        )
    for slots in (second.slots[1:], (*second.slots, second.slots[0])):
        stages_with = (first, replace(second, slots=slots))
        with pytest.raises(InternalError, match="a task without a slot, or gave it two"):
            exchanges_go_forward(
                replace(plan, execution_plan=replace(plan.execution_plan, stages=stages_with))
            )


@settings(max_examples=60)
@given(job=random_jobs())
def test_stages_of_random_jobs_are_valid(job: RandomJob) -> None:
    configuration = Configuration()
    configuration.set_string("execution.runtime-mode", job.keys["mode"])
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    partial(draw_job, job)(env)
    plan: ExecutionPlan | None = compile_program(env.program(), "execution").execution_plan
    assert plan is not None
    assert all(stage.vertices for stage in plan.stages)
    assert [stage.index for stage in plan.stages] == list(range(len(plan.stages)))
    for one, following in pairwise(plan.stages):
        assert following.tasks.start == one.tasks.stop
    channels: dict[str, list[int]] = {}
    placed = plan.placed()
    for exchange in plan.exchanges:
        size = placed[exchange.edge.source_vertex].parallelism
        numbers = channels.setdefault(exchange.edge.target_vertex, [])
        numbers += range(exchange.channel_base, exchange.channel_base + size)
    for numbers in channels.values():
        assert numbers == list(range(len(numbers)))
