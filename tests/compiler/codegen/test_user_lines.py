"""Lines of inlined functions name the user's lines, in the source and in tracebacks."""

from __future__ import annotations

import traceback

import pytest

from opchain import Configuration, StreamExecutionEnvironment


def halves(text: str) -> tuple[int, int]:
    number = int(text)
    half = 100 // number
    return number, half


def test_a_traceback_shows_the_line_of_an_inlined_function() -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection(["5", "0"]).map(halves).print()
    with pytest.raises(ZeroDivisionError) as raised:
        env.execute()
    shown = "".join(traceback.format_exception(raised.value))
    line = halves.__code__.co_firstlineno + 2
    assert f"= 100 // number_1  # test_user_lines.py:{line}" in shown


def test_a_line_that_is_also_the_call_site_is_named_once() -> None:
    env = StreamExecutionEnvironment()
    env.from_collection(["5"]).map(lambda text: text + "!").print()
    source = str(env.explain("generated"))
    (line,) = (line for line in source.splitlines() if "'!'" in line)
    assert line.count("test_user_lines.py:") == 1
