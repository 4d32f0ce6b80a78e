from __future__ import annotations

import re
from operator import itemgetter
from typing import Any

import pytest

from opchain.common import Configuration
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import CoProcessFunction, StreamExecutionEnvironment
from opchain.datastream.functions import KeyedProcessFunction


class Both(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


class One(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


def source_of(draw: Any) -> str:
    """The generated module of the last vertex."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(1)
    draw(env.from_collection([(1, 2)])).print()
    program = compile_program(env.program()).job_program
    assert program is not None
    return program.vertices[-1].source or ""


@pytest.mark.parametrize(
    ("select", "code"),
    [(lambda value: value[1], "key_0 = value[1]"), (itemgetter(1), "(value)")],
)
def test_a_key_is_written_out_or_called(select: Any, code: str) -> None:
    source = source_of(lambda stream: stream.key_by(select).process(One()))
    assert re.search(rf"key_0 = .*{re.escape(code.removeprefix('key_0 = '))}", source)


def test_methods_of_two_inputs_have_two_names() -> None:
    source = source_of(lambda stream: stream.connect(stream.rebalance()).process(Both()))
    assert "both_0_1(value, context_0)" in source
    assert "both_0_2(value, context_0)" in source


def test_the_first_line_of_an_operator_says_what_it_is_and_where_it_was_drawn() -> None:
    source = source_of(lambda stream: stream.key_by(lambda value: value[0]).process(One()))
    assert re.search(r"  # 0 KeyedProcess \(test_record_code.py:\d+\)", source)
