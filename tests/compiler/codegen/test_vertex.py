"""The generated code of vertices. tests/properties compares its results with interpreted code."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.lower.lowering import DEEPEST
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

LATE = OutputTag("late")


class Split(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield LATE, value
        yield value


def keep(value: int) -> bool:
    return value > 0


def sources(draw: Any, **settings: str) -> list[str]:
    """The generated modules of a program, vertex after vertex."""
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key.replace("_", "."), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    draw(env.from_sequence(1, 9)).print()
    program = compile_program(env.program()).job_program
    assert program is not None
    return [vertex.source or "" for vertex in program.vertices]


def test_a_linear_chain_is_one_flat_loop() -> None:
    (source,) = sources(lambda s: s.filter(keep).map(str), opchain_codegen_inline="false")
    code = [line.split("  #")[0] for line in source.splitlines()]
    dropped = code.index("        if not keep_fn_1(value):")
    assert code[dropped + 1 : dropped + 4] == [
        "            continue",
        "        count_1 += 1",
        "        value_2 = str_2(value)",
    ]


def test_generated_lines_name_their_operator_and_its_call_site() -> None:
    (source,) = sources(lambda s: s.map(str).name("text"))
    assert "  # 1 text (test_vertex.py:" in source


def test_no_code_for_timestamps_is_generated_without_timestamps() -> None:
    (plain,) = sources(lambda s: s.process(Split()))
    assert "def process_0(values):" in plain
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value
    )
    (timed,) = sources(lambda s: s.assign_timestamps_and_watermarks(strategy).process(Split()))
    assert "_timestamp = timestamp" in timed


def test_records_of_an_unread_side_output_are_dropped_at_once() -> None:
    (source,) = sources(lambda s: s.process(Split()))
    assert "emit_side" not in source
    assert "is_tagged" in source


def test_a_side_output_that_is_read_has_its_own_emit_function() -> None:
    def draw(stream: Any) -> Any:
        processed = stream.process(Split())
        processed.get_side_output(LATE).print()
        return processed

    (source,) = sources(draw)
    assert "def emit_1_0(value, timestamp):" in source


def test_deep_nesting_is_split_before_the_limit_of_cpython() -> None:
    def draw(stream: Any) -> Any:
        for _ in range(2 * DEEPEST):
            stream = stream.flat_map(lambda x: [x])
        return stream

    (source,) = sources(draw)
    deepest = max(len(line) - len(line.lstrip()) for line in source.splitlines())
    assert "def run_" in source
    assert deepest <= 4 * (DEEPEST + 3)


def test_a_reduce_combines_before_the_exchange_only_in_batch_mode() -> None:
    def draw(stream: Any) -> Any:
        return stream.key_by(lambda x: x % 2).reduce(lambda a, b: a + b)

    assert "combined_0[key_0] = (" in sources(draw, **{"execution_runtime-mode": "BATCH"})[0]
    assert "combined" not in sources(draw)[0]


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_generation_can_be_switched_off(enabled: str) -> None:
    (source,) = sources(lambda s: s.map(str), opchain_codegen_enabled=enabled)
    assert bool(source) is (enabled == "true")


def test_generating_code_twice_gives_the_same_text() -> None:
    def draw(stream: Any) -> Any:
        return stream.map(str).key_by(lambda x: x).reduce(lambda a, b: a + b)

    assert sources(draw) == sources(draw)


def test_a_copy_of_a_function_has_its_own_statements_with_their_notes() -> None:
    function = f.Function("process_0", "values", "", f.statements("x = [a]", operator=7))
    function.before, function.types = f.statements("a = 1", operator=3), {"a": int}
    copy = function.copy()
    assert isinstance(copy.body[0], ast.Assign)
    copy.body[0].value = f.name("other")
    copy.before.clear()
    copy.types.clear()
    copy.fresh.add("x")
    assert notes.operator(copy.body[0]) == 7
    assert [ast.unparse(item) for item in (*function.before, *function.body)] == [
        "a = 1",
        "x = [a]",
    ]
    assert function.types == {"a": int}
    assert not function.fresh
