from __future__ import annotations

import threading
from typing import Any

import pytest
from forms import job_of

from opchain.runtime.errors import GraphError, InternalError, UnpicklableFunctionError
from opchain.runtime.program.vertex_program import VertexProgram
from opchain.runtime.shipping.functions import ship, ship_vertices, shipped_task, unship

LOCK = threading.Lock()


def unpicklable(kind: str) -> Any:
    """Draws a program in which one function captures a lock."""
    lock = threading.Lock()

    def holds(value: Any) -> Any:
        return value, lock

    def draw(env: Any) -> None:
        stream = env.from_collection([1, 2])
        if kind == "map":
            stream.map(holds).name("holds a lock").print()
        elif kind == "key":
            stream.key_by(holds).reduce(lambda a, _: a).print()
        elif kind == "partitioner":
            stream.partition_custom(lambda *_: id(lock), lambda value: value).print()
        else:
            stream.map(lambda value: (value, LOCK)).name("global").print()

    return draw


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("map", ["'holds a lock' (test_functions.py:", "function", "captured variable 'lock'"]),
        ("key", ["(test_functions.py:", "key selector", "captured variable 'lock'"]),
        ("partitioner", ["(test_functions.py:", "partitioner", "captured variable 'lock'"]),
        ("global", ["'global' (test_functions.py:", "global variable 'LOCK'"]),
    ],
)
def test_the_error_names_a_function_that_cannot_be_pickled(kind: str, words: list[str]) -> None:
    job = job_of(unpicklable(kind))
    with pytest.raises(UnpicklableFunctionError) as caught:
        ship_vertices(job)
    message = str(caught.value)
    for word in (*words, "a _thread.lock", "cannot be pickled", "open()"):
        assert word in message
    assert "0x" not in message
    assert isinstance(caught.value, GraphError)
    assert caught.value.phase == "job_graph"


def test_a_vertex_that_cannot_be_pickled_without_a_culprit_is_an_internal_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = job_of(lambda env: env.from_collection([1]).print())

    def fails(value: Any) -> bytes:
        if isinstance(value, VertexProgram):
            raise TypeError("no")
        return b""

    monkeypatch.setattr("opchain.runtime.shipping.functions.ship", fails)
    with pytest.raises(InternalError, match="cannot be pickled: no"):
        ship_vertices(job)


def test_each_task_unpickles_its_own_functions() -> None:
    seen: list[int] = []

    def remember(value: int) -> int:
        seen.append(value)
        return len(seen)

    job = job_of(lambda env: env.from_collection([1]).map(remember).print())
    shipped = ship_vertices(job)
    last = job.stages[-1].tasks[0]
    one, other = (shipped_task(job, shipped, last) for _ in range(2))
    functions = [
        next(o.spec.function for o in program.vertices[0].operators if o.spec.kind == "map")
        for program in (one, other)
    ]
    assert functions[0](7) == 1
    assert functions[1](7) == 1
    assert seen == []


def test_a_task_gets_only_its_own_vertex() -> None:
    job = job_of(lambda env: env.from_collection([1]).rebalance().map(str).print(), parallelism=2)
    shipped = ship_vertices(job)
    for stage in job.stages:
        for task in stage.tasks:
            program = shipped_task(job, shipped, task)
            assert [vertex.name for vertex in program.vertices] == [job.vertex_of(task)[0].name]
            assert program.vertex_of(task)[1] == job.vertex_of(task)[1]


def test_lambdas_can_be_pickled() -> None:
    assert unship(ship(lambda value: value + 1))(1) == 2
