from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from forms import job_of
from hypothesis import given, settings
from random_jobs import RandomJob, draw_job, random_jobs

from opchain.common import Configuration
from opchain.compiler.passes.generate_code import generated_code_compiles
from opchain.runtime.errors import InternalError
from opchain.runtime.program.vertex_program import FIRST_OUTPUT, NO_OPERATOR


def configured(env: Any, key: str, value: str) -> None:
    configuration = Configuration()
    configuration.set_string(key, value)
    env.configure(configuration)


def test_every_vertex_has_a_generated_module(env: Any, source: Any, compiled: Any) -> None:
    source(env).map(str).rebalance().map(int)
    before, after = (compiled(env, stage).job_program for stage in ("programs", "generated"))
    assert [vertex.source for vertex in before.vertices] == [None, None]
    for bare, vertex in zip(before.vertices, after.vertices, strict=True):
        assert vertex.source.startswith("def process_0(values):\n")
        assert replace(vertex, source=None, names={}, lines=(), remarks=()) == bare


def test_code_generation_can_be_switched_off(env: Any, source: Any, compiled: Any) -> None:
    configured(env, "opchain.codegen.enabled", "false")
    source(env).map(str)
    assert compiled(env, "generated").job_program.vertices[0].source is None


@pytest.mark.parametrize(("inline", "text"), [("true", "value + 1"), ("false", "map_1(value)")])
def test_inlining_can_be_switched_off(
    env: Any, source: Any, compiled: Any, inline: str, text: str
) -> None:
    configured(env, "opchain.codegen.inline", inline)
    source(env).map(lambda x: x + 1)
    assert f"value_1 = {text}" in compiled(env, "generated").job_program.vertices[0].source


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "def process_0(values:\n"}, "is not Python"),
        ({"lines": (0,)}, "has lines that no operator is recorded for"),
    ],
)
def test_the_invariant_finds_an_invalid_module(
    env: Any, source: Any, compiled: Any, change: dict[str, Any], message: str
) -> None:
    source(env, "in").map(str)
    plan = compiled(env, "generated")
    (vertex,) = plan.job_program.vertices
    broken = replace(
        plan, job_program=replace(plan.job_program, vertices=(replace(vertex, **change),))
    )
    with pytest.raises(InternalError, match=f"'Source: in -> Map' {message}"):
        generated_code_compiles(broken)


@settings(max_examples=60)
@given(job=random_jobs())
def test_generated_modules_of_random_jobs_use_only_bound_names(job: RandomJob) -> None:
    for vertex in job_of(partial(draw_job, job), **job.keys).vertices:
        assert vertex.source is not None
        tree = ast.parse(vertex.source)
        stored = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        stored |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        free = loaded - stored - functions - set(dir(__builtins__)) - set(__builtins__)  # type: ignore[call-overload]
        assert free == set(vertex.names)
        assert len(vertex.lines) == vertex.source.count("\n")
        assert max(vertex.lines) < len(vertex.operators)
        assert min(vertex.lines) > FIRST_OUTPUT - max(1, len(vertex.outputs))
        assert all(
            line == NO_OPERATOR
            for line, text in zip(vertex.lines, vertex.source.splitlines(), strict=True)
            if not text or text.startswith("def ")
        )
