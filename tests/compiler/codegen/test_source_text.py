from __future__ import annotations

import pytest

from opchain.compiler.codegen.source_text import SourceText
from opchain.runtime.program.vertex_program import NO_OPERATOR


def test_each_line_knows_its_operator() -> None:
    text, body = SourceText(), SourceText()
    text.add(0, "def run(values):")
    body.add(1, "pass", 3)
    body.add(1, "")
    text.extend(body)
    assert str(text) == "def run(values):\n    pass\n\n"
    assert text.operators == [NO_OPERATOR, 3, NO_OPERATOR]


def test_a_loop_that_only_appends_becomes_one_line() -> None:
    text = SourceText()
    text.add_loop(0, "value", "values")
    text.add_loop(1, "part", "value.split()", operator=1, comment="  # 1 Flat Map (job.py:3)")
    text.add(2, "values_0.append(part)  # -> Map (rebalance)", 1)
    text.add(0, "done()")
    text.join_loops()
    assert str(text) == (
        "for value in values:\n"
        "    values_0.extend(value.split())  # 1 Flat Map (job.py:3) -> Map (rebalance)\n"
        "done()\n"
    )
    assert text.operators == [NO_OPERATOR, 1, NO_OPERATOR]


@pytest.mark.parametrize(
    "body",
    [
        ["values_0.append(value_1)"],
        ["values_0.append(value)", "values_1.append(value)"],
        ["values_0.append(other(value))"],
        ["if value:", "    values_0.append(value)"],
    ],
)
def test_other_loops_stay(body: list[str]) -> None:
    text = SourceText()
    text.add_loop(0, "value", "values")
    for line in body:
        text.add(1, line)
    before = str(text)
    text.join_loops()
    assert str(text) == before


def test_loops_of_another_text_are_joined_where_they_are_then() -> None:
    text, body = SourceText(), SourceText()
    text.add(0, "def run(values):")
    body.add_loop(1, "value", "values")
    body.add(2, "seen.append(value)", 4)
    text.extend(body)
    text.join_loops()
    assert str(text) == "def run(values):\n    seen.extend(values)\n"
