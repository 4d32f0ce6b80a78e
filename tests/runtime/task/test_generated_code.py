from __future__ import annotations

import linecache
import traceback
from dataclasses import replace
from typing import Any

import pytest
from forms import job_of, run_in_process, seen

from opchain.datastream import OutputTag
from opchain.datastream.functions import ProcessFunction
from opchain.runtime.task.generated_code import SHARED_NAMES, compiled, side_tags
from opchain.runtime.task.stream_task import StreamTask


class Splits(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield OutputTag("b"), value
        yield OutputTag("a"), value


def split(env: Any) -> None:
    processed = env.from_sequence(1, 2).process(Splits())
    processed.get_side_output(OutputTag("b")).map(int).print()
    processed.get_side_output(OutputTag("a")).rebalance().map(int).print()
    processed.get_side_output(OutputTag("b")).rebalance().map(int).print()


def chain_of(job: Any) -> Any:
    return StreamTask(job, 0, iter(())).chain


def test_equal_generated_code_is_compiled_once() -> None:
    source = "def process_0(values):\n    return values\n"
    assert compiled(source, "<generated: x>") is compiled(source, "<generated: x>")
    assert compiled(source, "<generated: y>").co_filename == "<generated: y>"


def test_functions_of_the_generated_module_are_used_in_the_chain() -> None:
    chain = chain_of(job_of(split))
    assert [function.__name__ for function in chain.batch_functions.values()] == ["process_0"]
    collects = {tag: collect.__name__ for tag, collect in chain.outputs[1].sides.items()}
    # Exchanges come first among the readers, and so do their tags.
    assert collects == {"a": "emit_1_0", "b": "emit_1_1"}


def test_tags_of_side_outputs_have_the_order_of_their_readers() -> None:
    vertex = job_of(split).vertices[0]
    assert side_tags(vertex, 1) == ["a", "b"]
    assert side_tags(vertex, 0) == []


def test_without_a_generated_module_the_chain_is_interpreted() -> None:
    job = job_of(split, "interpreted")
    assert chain_of(job).batch_functions == {}


def test_names_of_the_generated_module_are_bound_to_program_values() -> None:
    constant = object()
    job = job_of(lambda env: env.from_sequence(1, 2).map(str.upper).name("up").print())
    vertex = job.vertices[0]
    program = replace(
        vertex,
        source="def process_0(values):\n    for value in values:\n        found.append((change, it))\n",
        names={
            "change": ("method", 1, "map"),
            "found": ("value", found := []),
            "it": ("value", constant),
        },
    )
    chain = chain_of(replace(job, vertices=(program,)))
    chain.batch_functions[0]([1])
    assert found == [(str.upper, constant)]


def test_shared_names_are_available_in_every_generated_module() -> None:
    assert {"ABSENT", "IMMUTABLE", "NO_TIMESTAMP", "is_tagged", "own_copy"} <= set(SHARED_NAMES)
    assert repr(SHARED_NAMES["ABSENT"]) == "ABSENT"


def failing(message: str) -> Any:
    def fail(value: int, *_more: int) -> int:  # extra parameters prevent inlining
        raise ValueError(message)

    return fail


def test_a_traceback_shows_the_generated_line_of_the_failed_vertex() -> None:
    """Vertices with the same name share a file name, but each traceback shows the right lines."""

    def draw(env: Any) -> None:
        first = env.from_sequence(1, 1).rebalance().map(lambda x: x * 1_000).name("it")
        first.rebalance().map(failing("second")).name("it")

    with pytest.raises(ValueError, match="second") as caught:
        run_in_process(job_of(draw))
    shown = "".join(traceback.format_exception(caught.value))
    assert 'File "<generated: it>", line 4, in process_0' in shown
    assert "value_0 = fail_0(value)  # 0 it (test_generated_code.py:" in shown
    linecache.checkcache()
    assert "fail_0" in "".join(linecache.getlines("<generated: it>"))


@pytest.mark.parametrize("again", [False, True])
def test_a_worker_that_ran_two_jobs_shows_the_lines_of_the_failed_one(again: bool) -> None:
    def draw(env: Any) -> None:
        env.from_sequence(1, 1).rebalance().map(lambda x: x + 1).name("it")

    def other(env: Any) -> None:
        env.from_sequence(1, 1).rebalance().map(lambda x: x + 2).name("it")

    for one in (draw, other, draw) if again else (draw, other):
        run_in_process(job_of(one))
    text = "".join(linecache.getlines("<generated: it>"))
    assert ("value + 1" in text) is again
    assert ("value + 2" in text) is not again


def test_counters_of_generated_code_are_those_of_the_operators() -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 9).filter(lambda x: x % 3).map(str), "s")

    task = StreamTask(job_of(draw), 0, iter(()))
    list(task.run())
    counts = [(op.records_in, op.records_out) for op in task.chain.operators[:3]]
    assert counts == [(9, 9), (9, 6), (6, 6)]
