"""What must hold for every pipeline, tried on random ones of up to 200 nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compiled_form import compiled_form
from pipelines import build
from random_specs import random_spec

from opchain.compiler.passes.chain_operators import why_not_chained
from opchain.compiler.passes.pipeline import Plan, compile_program
from opchain.runtime.errors import GraphError

HERE = Path(__file__).parent
SIZES = [(seed, size) for size, seeds in ((12, 60), (50, 20), (200, 6)) for seed in range(seeds)]


def compiled(seed: int, size: int) -> tuple[Plan, dict[str, Any]] | None:
    """The plan and its written form, or None where the program is refused."""
    spec = random_spec(1000 * size + seed, size)
    try:
        env, spec_nodes = build(spec)
        plan = compile_program(env.program(), until="job-graph")
    except (GraphError, TypeError):
        return None
    return plan, compiled_form(plan, spec["name"], spec_nodes, with_plan=True)


PLANS = {
    f"{size} nodes, seed {seed}": found[0]
    for seed, size in SIZES
    if (found := compiled(seed, size)) is not None
}
each_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())


def test_most_random_pipelines_compile() -> None:
    assert len(PLANS) > len(SIZES) * 2 / 3


@each_plan
def test_every_operator_is_in_exactly_one_vertex(plan: Plan) -> None:
    assert plan.stream_graph is not None
    assert plan.job_graph is not None
    found = [
        operator.node.id
        for vertex in plan.job_graph.vertices
        for operator in vertex.operators + vertex.chained_sources
    ]
    assert sorted(found) == sorted(node.id for node in plan.stream_graph.nodes())


@each_plan
def test_edges_are_chained_exactly_when_no_rule_is_broken(plan: Plan) -> None:
    assert plan.stream_graph is not None
    assert plan.chained_edges is not None
    for edge in plan.stream_graph.edges():
        assert (why_not_chained(plan, edge) == []) is (edge.index in plan.chained_edges)


@each_plan
def test_vertices_are_sorted_after_their_producers(plan: Plan) -> None:
    job_graph = plan.job_graph
    assert job_graph is not None
    place = {vertex.id: number for number, vertex in enumerate(job_graph.vertices)}
    assert all(place[edge.source_vertex] < place[edge.target_vertex] for edge in job_graph.edges)


@each_plan
def test_forward_edges_between_vertices_join_equal_parallelism(plan: Plan) -> None:
    job_graph = plan.job_graph
    assert job_graph is not None
    for edge in job_graph.edges:
        if edge.ship_strategy == "FORWARD":
            source, target = map(job_graph.vertex, (edge.source_vertex, edge.target_vertex))
            assert source.parallelism == target.parallelism


@pytest.mark.parametrize(("seed", "size"), SIZES[::3])
def test_compiling_a_pipeline_twice_gives_the_same_plan(seed: int, size: int) -> None:
    first, second = compiled(seed, size), compiled(seed, size)
    assert (first and first[1]) == (second and second[1])


PRINT_FORMS = """
import sys
sys.path.insert(0, sys.argv[1])
from test_random_specs import SIZES, compiled
for seed, size in SIZES[::4]:
    found = compiled(seed, size)
    print(seed, size, found and found[1])
"""


@pytest.mark.slow
def test_plans_do_not_depend_on_the_hash_seed() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", PRINT_FORMS, HERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(printed[0]) > 10_000
    assert printed[0] == printed[1]
