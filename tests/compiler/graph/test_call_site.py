from __future__ import annotations

import sys
from typing import Any

import pytest

from opchain.compiler.graph.call_site import UNKNOWN_CALL_SITE, CallSite, user_call_site
from opchain.datastream import StreamExecutionEnvironment


def line() -> int:
    """The line that calls this."""
    return sys._getframe(1).f_lineno


def test_a_call_site_prints_as_file_and_line() -> None:
    assert str(CallSite("/somewhere/jobs/clicks.py", 14)) == "clicks.py:14"
    assert str(UNKNOWN_CALL_SITE) == "<unknown>:0"


def test_the_caller_is_the_user() -> None:
    assert user_call_site() == CallSite(__file__, line())


@pytest.mark.parametrize(
    "draw",
    [
        lambda stream: stream.map(str),
        lambda stream: stream.key_by(str).reduce(max),
        lambda stream: stream.key_by(str).sum(),
        lambda stream: stream.print(),
        lambda stream: stream.union(stream),
        lambda stream: stream.rebalance(),
    ],
)
def test_the_dsl_s_own_frames_are_passed_over(draw: Any) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    drawn = draw(env.from_sequence(1, 2))
    found = getattr(drawn, "transformation", None) or env.get_transformations()[-1]
    assert found.call_site == CallSite(__file__, draw.__code__.co_firstlineno)


def test_a_call_of_several_lines_is_where_it_is_made() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    first = line() + 2
    stream = (
        env.from_sequence(1, 2)
        .map(str)
    )  # fmt: skip
    assert first <= stream.transformation.call_site.line <= first + 2
