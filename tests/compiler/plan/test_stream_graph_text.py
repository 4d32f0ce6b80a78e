from pathlib import Path

import pytest
from programs import drawn

from opchain.compiler.passes.pipeline import compile_program
from opchain.compiler.plan.from_plan import stream_plan
from opchain.compiler.plan.stream_graph_text import stream_graph_text
from opchain.testing import assert_plan_matches

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("name", ["batch", "side_outputs", "two_sinks"])
def test_the_stream_graph_is_as_reviewed(name: str) -> None:
    assert_plan_matches(drawn(name), GOLDEN / f"{name}.stream-graph", stage="stream-graph")


def test_call_sites_are_shown_unless_they_are_unwanted() -> None:
    plan = stream_plan(compile_program(drawn("join").program(), "operator-ids"))
    text = stream_graph_text(plan)
    assert text.count("programs.py:") == len(plan.operators)
    assert "programs.py:" not in stream_graph_text(plan, call_sites=False)
