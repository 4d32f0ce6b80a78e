from __future__ import annotations

import gc
from typing import Any

import pytest

from opchain.compiler.graph.plan import StreamGraphError, required
from opchain.compiler.passes.pipeline import PASSES, STAGES, compile_program
from opchain.runtime.errors import InternalError


def test_stages_have_one_name_each() -> None:
    assert len(set(STAGES)) == len(PASSES)


@pytest.mark.parametrize("stage", STAGES[:11])
def test_compiling_stops_behind_any_stage(env: Any, source: Any, stage: str) -> None:
    source(env).map(str)
    plan = compile_program(env.program(), until=stage)
    assert (plan.job_graph is not None) is (stage == "job-graph")
    assert plan.stream_graph is not None


def test_an_unknown_stage_is_refused_with_the_known_ones(env: Any) -> None:
    with pytest.raises(
        ValueError, match="there is no stage 'jobgraph'; the stages are stream-graph"
    ):
        compile_program(env.program(), until="jobgraph")


def test_the_collector_is_as_it_was(env: Any, source: Any) -> None:
    with pytest.raises(StreamGraphError):
        compile_program(env.program())
    assert gc.isenabled()
    gc.disable()
    try:
        source(env).map(str)
        compile_program(env.program(), until="job-graph")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_pass_that_runs_too_early_says_so() -> None:
    with pytest.raises(InternalError, match="before the pass that produces its input"):
        required(None)
